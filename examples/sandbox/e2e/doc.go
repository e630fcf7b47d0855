// Package e2e tests the SDK and mkectl from one end to the other, on a sandbox.
//
// What they do is judged by what does not lie: the writable layers of the hosts, the commands
// that the hosts were told, and the audit log of the API server.
package e2e
