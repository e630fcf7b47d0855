package transporttest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/mkesdk/mkesdk/transport"
	"github.com/mkesdk/mkesdk/transport/transporttest"
)

func TestHostFiles(t *testing.T) {
	h := transporttest.New(t, "root@h1:22")
	if _, err := transport.ReadFile(t.Context(), h, "/etc/x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadFile of nothing: %v", err)
	}
	if err := transport.WriteFile(t.Context(), h, "/etc/x", strings.NewReader("data"), transport.FileOptions{Mode: 0o644, Owner: "etcd"}); err != nil {
		t.Fatal(err)
	}
	if f, ok := h.File("/etc/x"); !ok || f != (transporttest.File{Data: "data", Mode: "0644", Owner: "etcd"}) {
		t.Errorf("File = %+v, %v", f, ok)
	}
	data, err := transport.ReadFile(t.Context(), h, "/etc/x")
	if err != nil || string(data) != "data" {
		t.Errorf("ReadFile = %q, %v", data, err)
	}
}

func TestHostUnknownCommand(t *testing.T) {
	ft := &recorder{TB: t}
	h := transporttest.New(ft, "root@h1:22")
	h.Answer("v1\n", "k0s", "version")
	if out, err := transport.Output(t.Context(), h, transport.Command{Args: []string{"k0s", "version"}}); err != nil || out != "v1" {
		t.Errorf("Output = %q, %v", out, err)
	}
	if err := h.Run(t.Context(), transport.Command{Args: []string{"k0s", "verison"}}); err == nil {
		t.Error("an unknown command succeeded")
	}
	if len(ft.errors) != 1 || !strings.Contains(ft.errors[0], "k0s verison") {
		t.Errorf("the test was told %q", ft.errors)
	}
}

// A recorder is a test that takes down what it is told.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func ExampleHost() {
	var t testing.TB // that of the test
	h := transporttest.New(t, "root@10.0.0.1:22")
	h.Handle(func(_ context.Context, cmd transport.Command) error {
		_, _ = io.WriteString(cmd.Stderr, "unit not found\n")
		return transporttest.Exit(5)
	}, "systemctl", "restart")

	err := h.Run(context.Background(), transport.Command{Args: []string{"systemctl", "restart", "k0scontroller"}})
	fmt.Println(err)
	fmt.Print(h.Transcript())
	// Output:
	// root@10.0.0.1:22: systemctl restart k0scontroller: exit status 5: unit not found
	// systemctl restart k0scontroller
}
