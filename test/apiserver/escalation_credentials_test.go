package apiserver

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
	"math/big"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

const (
	authenticationGroup = authenticationv1.GroupName
	certificatesGroup   = certificatesv1.GroupName
)

var approved = certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
	Reason: "Approved"}

// credentialEscalations are ways to be somebody else.
var credentialEscalations = []escalation{
	{edge: "impersonate", how: "user", grants: func(string, string) []grant {
		return []grant{{verb: "impersonate", resource: "users", name: superuser}}
	}, attack: impersonate(func(*attacker) rest.ImpersonationConfig { return rest.ImpersonationConfig{UserName: superuser} })},
	{edge: "impersonate", how: "group", grants: func(string, string) []grant {
		return []grant{{verb: "impersonate", resource: "users", name: "anyone"}, {verb: "impersonate", resource: "groups", name: superteam}}
	}, attack: impersonate(func(*attacker) rest.ImpersonationConfig {
		return rest.ImpersonationConfig{UserName: "anyone", Groups: []string{superteam}}
	})},
	{edge: "impersonate", how: "masters", grants: func(string, string) []grant {
		return []grant{{verb: "impersonate", resource: "users", name: "anyone"}, {verb: "impersonate", resource: "groups",
			name: "system:masters"}}
	}, attack: impersonate(func(*attacker) rest.ImpersonationConfig {
		return rest.ImpersonationConfig{UserName: "anyone", Groups: []string{"system:masters"}}
	})},
	{edge: "impersonate", how: "account", grants: func(namespace, _ string) []grant {
		return []grant{{namespace: namespace, verb: "impersonate", resource: "serviceaccounts", name: superrobot}}
	}, attack: impersonate(func(a *attacker) rest.ImpersonationConfig {
		return rest.ImpersonationConfig{UserName: "system:serviceaccount:" + a.namespace + ":" + superrobot}
	})},
	// The constrained way: as somebody, and only what is named.
	{edge: "impersonate", how: "constrained", namespaced: true, unnamed: "it may do one thing as somebody else, and no more",
		grants: func(string, string) []grant {
			return []grant{{verb: "impersonate:user-info", group: authenticationGroup, resource: "users", name: superuser},
				{namespace: vault, verb: "impersonate-on:user-info:list", resource: "secrets"}}
		}, attack: impersonate(func(*attacker) rest.ImpersonationConfig { return rest.ImpersonationConfig{UserName: superuser} })},

	{edge: "token-request", grants: func(namespace, _ string) []grant {
		return []grant{{namespace: namespace, verb: "create", resource: "serviceaccounts/token", name: superrobot}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		answer, err := a.client.CoreV1().ServiceAccounts(a.namespace).CreateToken(ctx, superrobot, &authenticationv1.TokenRequest{},
			metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		return a.Bearer(answer.Status.Token), nil
	}},

	{edge: "secret-token", how: "get", grants: func(namespace, name string) []grant {
		return []grant{{namespace: namespace, verb: "get", resource: "secrets", name: name}}
	}, prepare: makeTokenSecret, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		return a.readToken(func() (*corev1.Secret, error) {
			return a.client.CoreV1().Secrets(a.namespace).Get(ctx, a.name, metav1.GetOptions{})
		})
	}},
	{edge: "secret-token", how: "list", grants: func(namespace, _ string) []grant {
		return []grant{{namespace: namespace, verb: "list", resource: "secrets"}}
	}, prepare: makeTokenSecret, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		return a.readToken(func() (*corev1.Secret, error) {
			list, err := a.client.CoreV1().Secrets(a.namespace).List(ctx, metav1.ListOptions{})
			if err != nil || len(list.Items) == 0 {
				return &corev1.Secret{}, err
			}
			return &list.Items[0], nil
		})
	}},
	{edge: "secret-token", how: "watch", grants: func(namespace, _ string) []grant {
		return []grant{{namespace: namespace, verb: "watch", resource: "secrets"}}
	}, prepare: makeTokenSecret, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		w, err := a.client.CoreV1().Secrets(a.namespace).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		defer w.Stop()
		for e := range w.ResultChan() {
			if s, ok := e.Object.(*corev1.Secret); ok && len(s.Data[corev1.ServiceAccountTokenKey]) > 0 {
				return a.Bearer(string(s.Data[corev1.ServiceAccountTokenKey])), nil
			}
		}
		return nil, errors.New("the watch ended")
	}},
	// Who may change a Secret is answered with it, whatever the change.
	{edge: "secret-token", how: "patch", grants: func(namespace, name string) []grant {
		return []grant{{namespace: namespace, verb: "patch", resource: "secrets", name: name}}
	}, prepare: makeTokenSecret, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		return a.readToken(func() (*corev1.Secret, error) {
			return a.client.CoreV1().Secrets(a.namespace).Patch(ctx, a.name, types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
		})
	}},
	// So is who may delete them all, even if none is deleted.
	{edge: "secret-token", how: "delete", grants: func(namespace, _ string) []grant {
		return []grant{{namespace: namespace, verb: "deletecollection", resource: "secrets"}}
	}, prepare: makeTokenSecret, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		return a.readToken(func() (*corev1.Secret, error) {
			var list corev1.SecretList
			err := a.client.CoreV1().RESTClient().Delete().Namespace(a.namespace).Resource("secrets").Param("dryRun", metav1.DryRunAll).Do(
				ctx).Into(&list)
			if err != nil || len(list.Items) == 0 {
				return &corev1.Secret{}, err
			}
			return &list.Items[0], nil
		})
	}},
	{edge: "secret-token", how: "apply", spare: []int{0}, grants: func(namespace, name string) []grant {
		return []grant{{namespace: namespace, verb: "create", resource: "secrets", name: name}, {namespace: namespace, verb: "patch",
			resource: "secrets", name: name}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		s := tokenSecret(a.name)
		s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
		return a.readToken(func() (*corev1.Secret, error) {
			return a.client.CoreV1().Secrets(a.namespace).Patch(ctx, a.name, types.ApplyPatchType, mustJSON(a.t, s),
				metav1.PatchOptions{FieldManager: "a"})
		})
	}},
	// No such Secret has to be there: whoever may make one is given a token in it.
	{edge: "secret-token", how: "create", spare: []int{0}, grants: func(namespace, name string) []grant {
		return []grant{{namespace: namespace, verb: "create", resource: "secrets"}, {namespace: namespace, verb: "get", resource: "secrets",
			name: name}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		if _, err := a.client.CoreV1().Secrets(a.namespace).Create(ctx, tokenSecret(a.name), metav1.CreateOptions{}); err != nil {
			return nil, err
		}
		return a.readToken(func() (*corev1.Secret, error) {
			return a.client.CoreV1().Secrets(a.namespace).Get(ctx, a.name, metav1.GetOptions{})
		})
	}},

	// The certificate comes with the answer to approving once more: it takes no right to get.
	{edge: "csr-sign", how: "approve", grants: func(string, string) []grant {
		return []grant{{verb: "create", group: certificatesGroup, resource: "certificatesigningrequests"},
			{verb: "update", group: certificatesGroup, resource: "certificatesigningrequests/approval"},
			{verb: "approve", group: certificatesGroup, resource: "signers", name: certificatesv1.KubeAPIServerClientSignerName}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		request, key, err := a.requestCertificate(ctx, superuser)
		if err != nil {
			return nil, err
		}
		request.Status.Conditions = append(request.Status.Conditions, approved)
		if request, err = a.client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, request.Name, request,
			metav1.UpdateOptions{}); err != nil {
			return nil, err
		}
		controlplane.Poll(a.t, "the certificate to be signed", func(ctx context.Context) (bool, string) {
			answer, err := a.client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, request.Name, request,
				metav1.UpdateOptions{})
			if err != nil {
				if latest, err := a.admin.CertificatesV1().CertificateSigningRequests().Get(ctx, request.Name,
					metav1.GetOptions{}); err == nil {
					request = latest
				}
				return false, err.Error()
			}
			request = answer
			return len(request.Status.Certificate) > 0, "approved"
		})
		return a.certified(request.Status.Certificate, key), nil
	}},
	// Whoever may approve for all signers of a domain may for this one.
	{edge: "csr-sign", how: "domain", grants: func(string, string) []grant {
		return []grant{{verb: "create", group: certificatesGroup, resource: "certificatesigningrequests"},
			{verb: "patch", group: certificatesGroup, resource: "certificatesigningrequests/approval"},
			{verb: "approve", group: certificatesGroup, resource: "signers", name: "kubernetes.io/*"}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		request, key, err := a.requestCertificate(ctx, superuser)
		if err != nil {
			return nil, err
		}
		approval := mustJSON(a.t, map[string]any{"status": map[string]any{"conditions": []any{approved}}})
		patch := func(ctx context.Context) (err error) {
			request, err = a.client.CertificatesV1().CertificateSigningRequests().Patch(ctx, a.name, types.StrategicMergePatchType,
				approval, metav1.PatchOptions{}, "approval")
			return err
		}
		if err := patch(ctx); err != nil {
			return nil, err
		}
		controlplane.Poll(a.t, "the certificate to be signed", func(ctx context.Context) (bool, string) {
			err := patch(ctx)
			return err == nil && len(request.Status.Certificate) > 0, fmt.Sprint(err)
		})
		return a.certified(request.Status.Certificate, key), nil
	}},
	// The right to sign is not a way by itself: what it takes is the authority's key.
	{edge: "csr-sign", how: "sign", none: true, grants: func(string, string) []grant {
		return []grant{{verb: "create", group: certificatesGroup, resource: "certificatesigningrequests"},
			{verb: "update", group: certificatesGroup, resource: "certificatesigningrequests/status"},
			{verb: "sign", group: certificatesGroup, resource: "signers", name: certificatesv1.KubeAPIServerClientSignerName}}
	}, attack: func(ctx context.Context, a *attacker) (*rest.Config, error) {
		request, key, err := a.requestCertificate(ctx, superuser)
		if err != nil {
			return nil, err
		}
		request.Status.Certificate = selfSigned(a.t, key, superuser)
		if _, err := a.client.CertificatesV1().CertificateSigningRequests().UpdateStatus(ctx, request, metav1.UpdateOptions{}); err != nil {
			a.t.Errorf("to sign: %v", err)
		}
		if err := target(ctx, a.certified(request.Status.Certificate, key), true); !apierrors.IsUnauthorized(err) {
			a.t.Errorf("a certificate that no authority signed: %v", err)
		}
		return a.config, target(ctx, a.config, true)
	}},
}

// impersonate returns what an attacker who may act as somebody does.
func impersonate(who func(*attacker) rest.ImpersonationConfig) func(context.Context, *attacker) (*rest.Config, error) {
	return func(ctx context.Context, a *attacker) (*rest.Config, error) {
		cfg := rest.CopyConfig(a.config)
		cfg.Impersonate = who(a)
		return cfg, target(ctx, cfg, true)
	}
}

// tokenSecret asks for a token of the namespace's powerful service account.
func tokenSecret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name,
		Annotations: map[string]string{corev1.ServiceAccountNameKey: superrobot}},
		Type: corev1.SecretTypeServiceAccountToken}
}

func makeTokenSecret(t *testing.T, s *scene, namespace, name string) {
	if _, err := s.admin.CoreV1().Secrets(namespace).Create(t.Context(), tokenSecret(name), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// readToken reads a Secret until there is a token in it.
func (a *attacker) readToken(read func() (*corev1.Secret, error)) (*rest.Config, error) {
	var token []byte
	var refusal error
	controlplane.Poll(a.t, "a token in the Secret", func(context.Context) (bool, string) {
		s, err := read()
		if apierrors.IsForbidden(err) {
			refusal = err
			return true, ""
		}
		if err != nil {
			return false, err.Error()
		}
		token = s.Data[corev1.ServiceAccountTokenKey]
		return len(token) > 0, "none yet"
	})
	return a.Bearer(string(token)), refusal
}

// requestCertificate asks for a client certificate of a name.
func (a *attacker) requestCertificate(ctx context.Context,
	name string) (*certificatesv1.CertificateSigningRequest, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		return nil, nil, err
	}
	request, err := a.client.CertificatesV1().CertificateSigningRequests().Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: a.name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		}}, metav1.CreateOptions{})
	return request, key, err
}

// certified is whoever a certificate names.
func (a *attacker) certified(certificate []byte, key *ecdsa.PrivateKey) *rest.Config {
	cfg := a.Anonymous()
	var err error
	if cfg.KeyData, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		a.t.Fatal(err)
	}
	cfg.CertData = certificate
	return cfg
}

// selfSigned returns a certificate of a name that its holder made alone.
func selfSigned(t testing.TB, key *ecdsa.PrivateKey, name string) []byte {
	t.Helper()
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
