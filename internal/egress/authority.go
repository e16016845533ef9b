package egress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"
	"time"
)

// The validity of an authority's certificates. It exceeds the life of a run that waits for an
// approval.
const (
	certificateTime = 48 * time.Hour
	maxLeaves       = 256 // number of cached leaves
)

// authority is the certificate authority of one run. Only the run's own commands trust it, and its
// keys exist only in memory.
type authority struct {
	cert *x509.Certificate
	pem  []byte
	key  *ecdsa.PrivateKey
	leaf *ecdsa.PrivateKey // key of all leaves

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key, leaf: leaf, leaves: make(map[string]*tls.Certificate)}
	template := &x509.Certificate{
		Subject:               pkix.Name{Organization: []string{"Parley"}, CommonName: "Parley, one run"},
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	der, err := a.signCertificate(template, template, &key.PublicKey)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a, nil
}

func (a *authority) signCertificate(template, parent *x509.Certificate, key *ecdsa.PublicKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template.SerialNumber, template.NotBefore, template.NotAfter = serial, now.Add(-time.Hour), now.Add(certificateTime)
	return x509.CreateCertificate(rand.Reader, template, parent, key, a.key)
}

// certificateFor returns the certificate of a host.
func (a *authority) certificateFor(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.leaves[host]; c != nil {
		return c, nil
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{Organization: []string{"Parley"}},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := a.signCertificate(template, a.cert, &a.leaf.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", host, err)
	}
	if len(a.leaves) >= maxLeaves {
		clear(a.leaves)
	}
	c := &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: a.leaf}
	a.leaves[host] = c
	return c, nil
}

// tlsConfig returns the TLS configuration for one host. named requires the client to send its name.
func (a *authority) tlsConfig(host string, named bool) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS12,
		NextProtos:             []string{"http/1.1"},
		SessionTicketsDisabled: true, // every handshake names its host
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			name := strings.TrimSuffix(strings.ToLower(hello.ServerName), ".")
			if name != host && (named || name != "") {
				return nil, errors.New("the connection leads to another host")
			}
			return a.certificateFor(host)
		},
	}
}

// CA returns the certificate, as PEM, that only the run's commands trust.
func (r *Run) CA() []byte {
	a, err := r.authority()
	if err != nil {
		return nil // crypto/rand does not fail
	}
	return a.pem
}
