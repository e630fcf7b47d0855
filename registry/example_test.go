package registry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"strings"

	ggcr "github.com/google/go-containerregistry/pkg/registry"

	"github.com/mkesdk/mkesdk/registry"
)

// A registry without the artifact says so, and what needed it is said with it.
func Example() {
	server := httptest.NewServer(ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	url := server.URL + "/mke" // http://, because it is written so

	client, err := registry.New(registry.Config{URL: url})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ref, err := registry.K0sReference(url, "v1.36.3+k0s.2")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Verify(context.Background(), registry.Artifact{Ref: ref, NeededBy: "the k0s binary of 10.0.1.15"})
	if missing, ok := errors.AsType[*registry.MissingError](err); ok {
		fmt.Println(missing.Ref[strings.Index(missing.Ref, "/"):], "is missing for", missing.NeededBy[0])
	}
	// Output: /mke/k0s:v1.36.3-k0s.2 is missing for the k0s binary of 10.0.1.15
}

// The k0s binary is streamed, and is good only once its end was reached.
func ExampleClient_Binary() {
	client, err := registry.New(registry.Config{URL: "registry.example.com/mke"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	stage := func(ctx context.Context, to io.Writer) error {
		binary, err := client.Binary(ctx, "registry.example.com/mke/k0s:v1.36.3-k0s.2", "linux/amd64")
		if err != nil {
			return err
		}
		r, err := binary.Open(ctx)
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = io.Copy(to, r)
		return err // a *DigestError if it is not the binary of binary.Digest
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // an example has no registry to wait for
	fmt.Println(errors.Is(stage(ctx, os.Stdout), context.Canceled))
	// Output: true
}
