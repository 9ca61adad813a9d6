// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificates are a certificate authority and a server certificate that all TLS
// servers here share.
type Certificates struct {
	CAFile, CertFile, KeyFile string
	// ServiceAccountKey signs the tokens of ServiceAccounts.
	ServiceAccountKey string
	Pool              *x509.CertPool
	Server            tls.Certificate
}

// frontProxy is the name by which aggregated servers know the API server.
const frontProxy = "harvester"

func newCertificates(t testing.TB, dir string) *Certificates {
	t.Helper()
	authorityKey := newKey(t)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "end-to-end test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	serverKey := newKey(t)
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: frontProxy},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		// The API server is a client of virt-api with it, for the users of the aggregated API.
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{"localhost", "virt-api." + systemNamespace + ".svc"}, IPAddresses: []net.IP{net.ParseIP(loopback)},
	}
	sign := func(template *x509.Certificate, key *ecdsa.PrivateKey) []byte {
		der := must[[]byte](t, "certificate")(x509.CreateCertificate(rand.Reader, template, authority, &key.PublicKey, authorityKey))
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	authorityPEM, serverPEM, serverKeyPEM := sign(authority, authorityKey), sign(server, serverKey), encodeKey(t, serverKey)
	// Nothing else is written there: KubeVirt's programs read their certificates again whenever a file of
	// the directory changes.
	dir = filepath.Join(dir, "certificates")
	check(t, dir, os.Mkdir(dir, 0o700))
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		check(t, name, os.WriteFile(path, content, 0o600))
		return path
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authorityPEM)
	return &Certificates{
		CAFile:            file("ca.pem", authorityPEM),
		CertFile:          file("server.pem", serverPEM),
		KeyFile:           file("server-key.pem", serverKeyPEM),
		ServiceAccountKey: file("service-accounts.pem", encodeKey(t, newKey(t))),
		Pool:              pool,
		Server:            must[tls.Certificate](t, "key pair")(tls.X509KeyPair(serverPEM, serverKeyPEM)),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	return must[*ecdsa.PrivateKey](t, "key")(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
}

func encodeKey(t testing.TB, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der := must[[]byte](t, "key")(x509.MarshalECPrivateKey(key))
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}
