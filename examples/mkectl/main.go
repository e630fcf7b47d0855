// Command mkectl adds hosts to an MKE 4 cluster over SSH.
//
// It is a small program over the public API of the SDK: flags to options, events
// to lines, errors to exit codes, and nothing else.
package main

import (
	"context"
	"os"
)

func main() {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, sdk: real{}}
	os.Exit(a.run(context.Background(), os.Args[1:]))
}
