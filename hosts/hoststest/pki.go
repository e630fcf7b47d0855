package hoststest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
)

// Kubeconfig returns a kubelet.conf of a worker: the CA of its cluster, and its
// client certificate by the name of its file.
func Kubeconfig(caPEM []byte, server string) string {
	return fmt.Sprintf(`apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: %s
    server: %s
  name: default-cluster
contexts:
- context:
    cluster: default-cluster
    namespace: default
    user: default-auth
  name: default-context
current-context: default-context
kind: Config
users:
- name: default-auth
  user:
    client-certificate: /var/lib/k0s/kubelet/pki/kubelet-client-current.pem
    client-key: /var/lib/k0s/kubelet/pki/kubelet-client-current.pem
`, base64.StdEncoding.EncodeToString(caPEM), server)
}

// Token returns a join token as k0s makes it: a kubeconfig that holds the CA of
// the cluster and the secret, compressed, on one line.
func Token(caPEM []byte, server, secret string) (string, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := fmt.Fprintf(z, `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: %s
    server: %s
  name: k0s
contexts:
- context:
    cluster: k0s
    user: kubelet-bootstrap
  name: k0s
current-context: k0s
kind: Config
users:
- name: kubelet-bootstrap
  user:
    token: %s
`, base64.StdEncoding.EncodeToString(caPEM), server, secret)
	if err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()) + "\n", nil
}
