// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"io"
	"net"
	"strings"
	"testing"
)

func TestAutoMTLSConnects(t *testing.T) {
	forBoth(t, func(t *testing.T, binary string) {
		h := launch(t, binary, withAutoMTLS)
		if err := h.rpc.Ping(); err != nil {
			t.Error(err)
		}
		if _, err := h.target.PluginInfo(); err != nil {
			t.Error(err)
		}
		h.client.Kill()
		h.checkEndedInOrder()
	})
}

func TestAutoMTLSRefusesEverybodyElse(t *testing.T) {
	own := hostCertificate(t)
	p := start(t, fakePlugin, "TMPDIR="+t.TempDir(), "PLUGIN_CLIENT_CERT="+asPEM(own))
	for name, test := range map[string]struct {
		certificates []tls.Certificate
		welcome      bool
	}{
		"the host's certificate":     {[]tls.Certificate{own}, true},
		"no certificate":             {nil, false},
		"another host's certificate": {[]tls.Certificate{hostCertificate(t)}, false},
	} {
		conn := must1(net.Dial("unix", p.fields[3]))(t)
		defer conn.Close()
		client := tls.Client(conn, &tls.Config{
			Certificates: test.certificates, InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		// In TLS 1.3 the client's handshake ends before the server has verified its certificate. An
		// HTTP/2 server sends first.
		n, err := client.Read(make([]byte, 1))
		if (n == 1) != test.welcome {
			t.Errorf("%s: read %d bytes, %v", name, n, err)
		}
	}
	plain := must1(net.Dial("unix", p.fields[3]))(t)
	defer plain.Close()
	_, _ = plain.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	if reply, err := io.ReadAll(plain); strings.Contains(string(reply), "\x00\x00\x00\x04\x01") {
		t.Errorf("without TLS: %q, %v", reply, err)
	}
	p.stop()
}

func TestServerCertificateIsForLocalhostAndOneTime(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		client := asPEM(hostCertificate(t))
		p := start(t, fakePlugin, "TMPDIR="+t.TempDir(), "PLUGIN_CLIENT_CERT="+client)
		der := must1(base64.RawStdEncoding.DecodeString(p.fields[5]))(t)
		certificate := must1(x509.ParseCertificate(der))(t)
		if err := certificate.VerifyHostname("localhost"); err != nil {
			t.Error(err)
		}
		if seen[certificate.SerialNumber.String()] || certificate.SerialNumber.BitLen() > 128 {
			t.Errorf("serial number %v", certificate.SerialNumber)
		}
		seen[certificate.SerialNumber.String()] = true
		p.stop()
	}
}

func TestUnreadableClientCertificateExitsWithTheReason(t *testing.T) {
	tmp := t.TempDir()
	pem := asPEM(hostCertificate(t))
	for _, value := range []string{"garbage", pem[:100], pem + pem} {
		code, stdout, stderr := run(t, fakePlugin, cookie, "TMPDIR="+tmp, "PLUGIN_CLIENT_CERT="+value)
		if code != 1 || stdout != "" || !strings.Contains(stderr, "PLUGIN_CLIENT_CERT") {
			t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
		}
		checkStderr(t, stderr)
		checkEmpty(t, tmp)
	}
}
