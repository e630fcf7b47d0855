package k0s

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"
)

// serveStatus answers on the status socket until the context ends; then the socket is removed. A
// k0s that is killed leaves it behind.
func serveStatus(ctx context.Context, socket string, now func(context.Context) status) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/status", func(w http.ResponseWriter, r *http.Request) { answer(w, now(r.Context())) })
	mux.HandleFunc("/components", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"events": struct{}{}, "healthProbes": struct{}{}})
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		w.WriteHeader(http.StatusInternalServerError)
	}
}
