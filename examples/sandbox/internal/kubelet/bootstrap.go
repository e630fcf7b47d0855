package kubelet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// certificateWait bounds one wait for the cluster to sign; then a new request is made.
const certificateWait = 2 * time.Minute

// requestCertificate asks the cluster for the node's certificate and writes it, and the kubeconfig
// that uses it, once it is issued.
func requestCertificate(ctx context.Context, o Options, boot *clientcmdapi.Config) error {
	ctx, cancel := context.WithTimeout(ctx, certificateWait)
	defer cancel()
	conf, err := clientcmd.NewDefaultClientConfig(*boot, nil).ClientConfig()
	if err != nil {
		return err
	}
	conf.UserAgent, conf.Timeout = "kubelet", 10*time.Second
	c, err := kubernetes.NewForConfig(conf)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + o.NodeName, Organization: []string{"system:nodes"}},
	}, key)
	if err != nil {
		return err
	}
	cert, err := sign(ctx, c, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
	current, err := storeCertificate(filepath.Join(o.RootDir, "pki"), append(cert, keyPEM...))
	if err != nil {
		return err
	}
	return writeKubeconfig(o.Kubeconfig, conf.Host, conf.CAData, current)
}

// sign makes the request and waits for what the cluster says to it.
func sign(ctx context.Context, c kubernetes.Interface, request []byte) ([]byte, error) {
	csrs := c.CertificatesV1().CertificateSigningRequests()
	csr, err := csrs.Create(ctx, &certv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-csr-"},
		Spec: certv1.CertificateSigningRequestSpec{
			Request: request, SignerName: certv1.KubeAPIServerClientKubeletSignerName,
			Usages: []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot create certificate signing request: %w", err)
	}
	for {
		for _, cond := range csr.Status.Conditions {
			if cond.Type != certv1.CertificateApproved && cond.Status != corev1.ConditionFalse {
				return nil, fmt.Errorf("certificate signing request %s: %s: %s", csr.Name, cond.Type, cond.Message)
			}
		}
		if len(csr.Status.Certificate) > 0 {
			return csr.Status.Certificate, nil
		}
		if !sleep(ctx, 150*time.Millisecond) {
			return nil, fmt.Errorf("certificate signing request %s was not signed: %w", csr.Name, ctx.Err())
		}
		if csr, err = csrs.Get(ctx, csr.Name, metav1.GetOptions{}); err != nil {
			return nil, fmt.Errorf("cannot wait for certificate signing request: %w", err)
		}
	}
}

// storeCertificate writes the pair under a name with its time and lets the name of the current one
// point to it, as the kubelet does. It gives the latter.
func storeCertificate(dir string, pair []byte) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(dir, time.Now().Format("kubelet-client-2006-01-02-15-04-05.pem"))
	current := filepath.Join(dir, "kubelet-client-current.pem")
	if err := os.WriteFile(file, pair, 0o600); err != nil {
		return "", err
	}
	if err := os.Remove(current); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	return current, os.Symlink(file, current)
}

// writeKubeconfig puts the node's kubeconfig in place at once: others take its presence for a node
// that has joined.
func writeKubeconfig(name, server string, ca []byte, pair string) error {
	out, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"default-cluster": {Server: server, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"default-auth": {ClientCertificate: pair, ClientKey: pair}},
		Contexts:       map[string]*clientcmdapi.Context{"default-context": {Cluster: "default-cluster", AuthInfo: "default-auth", Namespace: "default"}},
		CurrentContext: "default-context",
	})
	if err != nil {
		return err
	}
	tmp := name + ".tmp"
	if err := os.WriteFile(tmp, out, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, name)
}
