// Package transporttest has stand-ins for hosts: what code that uses package transport is
// tested with.
//
// [Host] is a fake [transport.Conn] that answers commands as it is told to. [Server] is
// an SSH server that runs real commands in this process. [Proxy] stalls a link.
// [TestConn] is the contract that every Conn has to keep.
package transporttest
