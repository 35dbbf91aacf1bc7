package identity

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	kubeconfig "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// Endpoint returns the URL the apiservers of a cluster post to. serverURL is the receiver's base, such as https://retrial.example:9443.
// apiserver, which may be empty, tells several of one cluster apart: events do not say who sent them. There is no query: apiservers drop
// it.
func Endpoint(serverURL, cluster, apiserver string) (string, error) {
	u, err := url.Parse(serverURL)
	if err != nil {
		return "", fmt.Errorf("endpoint of cluster %s: %w", cluster, err)
	}
	if u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return "", fmt.Errorf("endpoint of cluster %s: invalid URL %q: want http or https, and a host", cluster, serverURL)
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", fmt.Errorf("endpoint of cluster %s: invalid URL %q: want a scheme, a host and a path only", cluster, u.Redacted())
	}
	if !ValidName(cluster) {
		return "", fmt.Errorf("endpoint of cluster %q: %w", cluster, ErrName)
	}
	path := strings.TrimSuffix(u.Path, "/") + "/v1/clusters/" + cluster
	if apiserver != "" {
		path += "/apiservers/" + url.PathEscape(apiserver)
	}
	return u.Scheme + "://" + u.Host + path + "/audit", nil
}

// WebhookConfig returns the file for kube-apiserver's --audit-webhook-config-file, with the
// credentials embedded, or a token in place of the certificate if token is not empty. It is as secret
// as the key it holds.
func WebhookConfig(serverURL, apiserver string, cred Credentials, token string) ([]byte, error) {
	user := kubeconfig.AuthInfo{ClientCertificateData: cred.Cert, ClientKeyData: cred.Key}
	if token != "" {
		user = kubeconfig.AuthInfo{Token: token}
	}
	return webhookConfig(serverURL, apiserver, cred.Cluster, kubeconfig.Cluster{CertificateAuthorityData: cred.CA}, user)
}

func webhookConfig(serverURL, apiserver, cluster string, host kubeconfig.Cluster, user kubeconfig.AuthInfo) (out []byte, err error) {
	if host.Server, err = Endpoint(serverURL, cluster, apiserver); err != nil {
		return nil, err
	}
	out, err = yaml.Marshal(kubeconfig.Config{
		APIVersion:     "v1",
		Kind:           "Config",
		Clusters:       []kubeconfig.NamedCluster{{Name: "retrial", Cluster: host}},
		AuthInfos:      []kubeconfig.NamedAuthInfo{{Name: cluster, AuthInfo: user}},
		Contexts:       []kubeconfig.NamedContext{{Name: "retrial", Context: kubeconfig.Context{Cluster: "retrial", AuthInfo: cluster}}},
		CurrentContext: "retrial",
	})
	if err != nil {
		return nil, fmt.Errorf("write webhook configuration of cluster %s: %w", cluster, err)
	}
	return out, nil
}

// FileWebhookConfig is the name of the webhook configuration among [WebhookFiles].
const FileWebhookConfig = "webhook.kubeconfig"

// WebhookFile is one of the files that make up a webhook configuration.
type WebhookFile struct {
	Name    string
	Content []byte
	Mode    os.FileMode
}

// WebhookFiles returns WebhookConfig with authority, certificate and key in files beside it, in
// the order to write them. kube-apiserver rereads those while it runs, but never the
// configuration itself.
func WebhookFiles(serverURL, apiserver string, cred Credentials) ([]WebhookFile, error) {
	const ca, cert, key = "ca.crt", "client.crt", "client.key"
	config, err := webhookConfig(serverURL, apiserver, cred.Cluster, kubeconfig.Cluster{CertificateAuthority: ca},
		kubeconfig.AuthInfo{ClientCertificate: cert, ClientKey: key})
	if err != nil {
		return nil, err
	}
	return []WebhookFile{{ca, cred.CA, 0o644}, {key, cred.Key, 0o600}, {cert, cred.Cert, 0o644}, {FileWebhookConfig, config, 0o600}}, nil
}
