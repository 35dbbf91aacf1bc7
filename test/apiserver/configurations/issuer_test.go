package configurations

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

// serveTLS serves a handler on loopback until the test ends, with a certificate of an
// authority, and returns its URL.
func serveTLS(t *testing.T, ca *controlplane.Authority, h http.Handler) string {
	t.Helper()
	cert, key := ca.Issue(t, pkix.Name{CommonName: "server"}, x509.ExtKeyUsageServerAuth, "127.0.0.1")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// issuer issues tokens as an OpenID Connect provider does, with a key of its own.
type issuer struct {
	url string
	key *ecdsa.PrivateKey
}

// issuers serves the discovery documents and keys of some issuers, each below a path of its
// own.
func issuers(t *testing.T, ca *controlplane.Authority, names ...string) map[string]*issuer {
	t.Helper()
	all, mux := map[string]*issuer{}, http.NewServeMux()
	for _, name := range names {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		i := &issuer{key: key}
		all[name] = i
		answer := func(path string, body func() any) {
			mux.HandleFunc("GET /"+name+path, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(body())
			})
		}
		answer("/.well-known/openid-configuration", func() any {
			return map[string]any{"issuer": i.url, "jwks_uri": i.url + "/keys", "authorization_endpoint": i.url + "/auth",
				"token_endpoint":           i.url + "/token",
				"response_types_supported": []string{"id_token"}, "subject_types_supported": []string{"public"},
				"id_token_signing_alg_values_supported": []string{"ES256"}}
		})
		answer("/keys", func() any {
			point, err := key.PublicKey.Bytes()
			if err != nil {
				return err.Error()
			}
			return map[string]any{"keys": []map[string]string{{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "k",
				"x": encoded(point[1:33]), "y": encoded(point[33:])}}}
		})
	}
	url := serveTLS(t, ca, mux)
	for name, i := range all {
		i.url = url + "/" + name
	}
	return all
}

func encoded(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// token signs claims. Without other ones it is good for an hour and has an ID of its own; a
// claim of nil is left out.
func (i *issuer) token(t *testing.T, claims map[string]any) string {
	t.Helper()
	all := map[string]any{"iss": i.url, "aud": "retrial", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
		"jti": uuid.NewString()}
	for k, v := range claims {
		if all[k] = v; v == nil {
			delete(all, k)
		}
	}
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return encoded(text)
	}
	signed := part(map[string]string{"alg": "ES256", "typ": "JWT", "kid": "k"}) + "." + part(all)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + encoded(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}
