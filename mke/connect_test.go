package mke

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/transport"
)

// noSSH is a Dialer that is never used.
type noSSH struct{}

func (noSSH) Dial(context.Context, hosts.SSH) (transport.Conn, error) {
	return nil, errors.New("nothing is to be dialed")
}

// kubeconfigFor writes the kubeconfig of a server.
func kubeconfigFor(t *testing.T, server string, ca []byte) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "t0ken"}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "x"
	name := filepath.Join(t.TempDir(), "mke.kubeconf")
	if err := clientcmd.WriteToFile(*c, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// apiServer is an API server with one MkeConfig, or with one answer to everything.
func apiServer(t *testing.T, status int, body string) (url string, ca []byte) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // a client that hangs up is what is tested
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

const (
	noConfigs = `{"apiVersion":"mke.mirantis.com/v1alpha1","kind":"MkeConfigList","metadata":{},"items":[]}`
	oneConfig = `{"apiVersion":"mke.mirantis.com/v1alpha1","kind":"MkeConfigList","metadata":{},"items":[
		{"apiVersion":"mke.mirantis.com/v1alpha1","kind":"MkeConfig","metadata":{"name":"mke","namespace":"mke"},"spec":{"version":"4.2.1"}}]}`
)

// TestConnect reaches a cluster by a kubeconfig and by a rest.Config.
func TestConnect(t *testing.T) {
	url, ca := apiServer(t, http.StatusOK, oneConfig)
	caFile := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(caFile, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	for name, o := range map[string]ConnectOptions{
		"kubeconfig":        {Kubeconfig: kubeconfigFor(t, url, ca)},
		"one of several":    {Kubeconfig: missing + string(os.PathListSeparator) + kubeconfigFor(t, url, ca)},
		"REST":              {REST: &rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, Kubeconfig: missing},
		"REST with CA file": {REST: &rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{CAFile: caFile}}},
	} {
		o.SSH = noSSH{}
		c, err := Connect(t.Context(), o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if string(c.CA) != string(ca) {
			t.Errorf("%s: CA %q", name, c.CA)
		}
		if c.Nodes == nil || c.Config == nil || c.Etcd == nil || c.Leases == nil || c.Artifacts == nil || c.SSH == nil {
			t.Errorf("%s: a view is missing: %+v", name, c)
		}
		if err := c.Close(); err != nil {
			t.Errorf("%s: close: %v", name, err)
		}
	}
}

// TestConnectFails says what is wrong and what would be right.
func TestConnectFails(t *testing.T) {
	ok, okCA := apiServer(t, http.StatusOK, oneConfig)
	empty, emptyCA := apiServer(t, http.StatusOK, noConfigs)
	none, noneCA := apiServer(t, http.StatusNotFound, "404 page not found")
	forbidden, forbiddenCA := apiServer(t, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`)
	unauthorized, unauthorizedCA := apiServer(t, http.StatusUnauthorized, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401,"message":"no"}`)
	gone := httptest.NewTLSServer(http.NotFoundHandler())
	gone.Close()
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for name, tt := range map[string]struct {
		o    ConnectOptions
		is   error
		want []string
	}{
		"no SSH":           {ConnectOptions{Kubeconfig: kubeconfigFor(t, ok, okCA)}, ErrInvalid, []string{"ConnectOptions.SSH"}},
		"nothing":          {ConnectOptions{SSH: noSSH{}}, ErrInvalid, []string{"no kubeconfig"}},
		"no file":          {ConnectOptions{SSH: noSSH{}, Kubeconfig: filepath.Join(dir, "a") + string(os.PathListSeparator) + filepath.Join(dir, "b")}, ErrInvalid, []string{filepath.Join(dir, "a"), filepath.Join(dir, "b"), "give its path"}},
		"a directory":      {ConnectOptions{SSH: noSSH{}, Kubeconfig: dir}, ErrInvalid, []string{dir}},
		"tabs":             {ConnectOptions{SSH: noSSH{}, Kubeconfig: file("tabs", "\tapiVersion: v1\n")}, ErrInvalid, []string{filepath.Join(dir, "tabs"), "YAML"}},
		"empty":            {ConnectOptions{SSH: noSSH{}, Kubeconfig: file("empty", "")}, ErrInvalid, []string{"no current-context"}},
		"dangling context": {ConnectOptions{SSH: noSSH{}, Kubeconfig: file("dangling", "apiVersion: v1\nkind: Config\ncurrent-context: x\n")}, ErrInvalid, []string{filepath.Join(dir, "dangling"), "x"}},
		"no CA":            {ConnectOptions{SSH: noSSH{}, Kubeconfig: kubeconfigFor(t, ok, nil)}, ErrInvalid, []string{"certificate-authority"}},
		"no CA file":       {ConnectOptions{SSH: noSSH{}, REST: &rest.Config{Host: ok, TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(dir, "no-ca")}}}, ErrInvalid, []string{"no-ca"}},
		"down":             {ConnectOptions{SSH: noSSH{}, Kubeconfig: kubeconfigFor(t, gone.URL, okCA)}, nil, []string{"cannot be reached", gone.URL, "mke.kubeconf"}},
		"other CA":         {ConnectOptions{SSH: noSSH{}, Kubeconfig: kubeconfigFor(t, ok, newPKI(t).ca)}, ErrOtherCluster, []string{"kubeconfig of another cluster?"}},
		"forbidden":        {ConnectOptions{SSH: noSSH{}, Kubeconfig: kubeconfigFor(t, forbidden, forbiddenCA)}, nil, []string{"administrator"}},
		"unauthorized":     {ConnectOptions{SSH: noSSH{}, Kubeconfig: kubeconfigFor(t, unauthorized, unauthorizedCA)}, nil, []string{"expired?"}},
		"not MKE":          {ConnectOptions{SSH: noSSH{}, Kubeconfig: kubeconfigFor(t, none, noneCA)}, ErrNotFound, []string{"not an MKE 4 cluster"}},
		"no MkeConfig":     {ConnectOptions{SSH: noSSH{}, Kubeconfig: kubeconfigFor(t, empty, emptyCA)}, ErrNotFound, []string{"no MkeConfig"}},
	} {
		c, err := Connect(t.Context(), tt.o)
		if err == nil || c != nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: %v does not match %v", name, err, tt.is)
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in: %v", name, want, err)
			}
		}
		if strings.Contains(err.Error(), "t0ken") {
			t.Errorf("%s: the token is in: %v", name, err)
		}
	}
}

// TestDefaultKubeconfig goes by the flag, the environment and the place where MKE puts it.
func TestDefaultKubeconfig(t *testing.T) {
	for _, tt := range []struct{ flag, env, want string }{
		{"/f", "/e", "/f"},
		{"", "/e:/g", "/e:/g"},
		{"", "", "/home/me/.mke/mke.kubeconf"},
	} {
		env := map[string]string{"KUBECONFIG": tt.env, "HOME": "/home/me"}
		if got := DefaultKubeconfig(tt.flag, func(k string) string { return env[k] }); got != tt.want {
			t.Errorf("flag %q, KUBECONFIG %q: %s, want %s", tt.flag, tt.env, got, tt.want)
		}
	}
}
