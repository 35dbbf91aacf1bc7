package identity

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// Webhook configuration as kube-apiserver reads it: the part of a kubeconfig that
// --audit-webhook-config-file looks at. Byte fields become base64.
type (
	kubeconfig struct {
		APIVersion     string         `json:"apiVersion"`
		Kind           string         `json:"kind"`
		Clusters       []namedCluster `json:"clusters"`
		Users          []namedUser    `json:"users"`
		Contexts       []namedContext `json:"contexts"`
		CurrentContext string         `json:"current-context"`
	}
	namedCluster struct {
		Name    string         `json:"name"`
		Cluster kubeconfigHost `json:"cluster"`
	}
	kubeconfigHost struct {
		Server string `json:"server"`
		CA     []byte `json:"certificate-authority-data,omitempty"`
		CAFile string `json:"certificate-authority,omitempty"`
	}
	namedUser struct {
		Name string         `json:"name"`
		User kubeconfigUser `json:"user"`
	}
	kubeconfigUser struct {
		Cert     []byte `json:"client-certificate-data,omitempty"`
		Key      []byte `json:"client-key-data,omitempty"`
		CertFile string `json:"client-certificate,omitempty"`
		KeyFile  string `json:"client-key,omitempty"`
		Token    string `json:"token,omitempty"`
	}
	namedContext struct {
		Name    string            `json:"name"`
		Context kubeconfigContext `json:"context"`
	}
	kubeconfigContext struct {
		Cluster string `json:"cluster"`
		User    string `json:"user"`
	}
)

// Endpoint returns the URL the apiservers of a cluster post to. serverURL is the
// receiver's base, such as https://retrial.example:9443. apiserver tells several apiservers
// of one cluster apart, since an event does not say which one sent it; it may be empty. The
// URL has no query string: apiservers drop one.
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

// Kubeconfig returns the file for kube-apiserver's --audit-webhook-config-file, with the
// certificate last issued for the cluster embedded. It is as secret as the key it holds.
func (r *Registry) Kubeconfig(cluster, serverURL string) ([]byte, error) {
	cred, err := r.Credentials(cluster)
	if err != nil {
		return nil, err
	}
	return WebhookConfig(serverURL, "", cred, "")
}

// WebhookConfig is Kubeconfig for given credentials and an apiserver's name, with a token in
// place of the certificate if token is not empty.
func WebhookConfig(serverURL, apiserver string, cred Credentials, token string) ([]byte, error) {
	endpoint, err := Endpoint(serverURL, cred.Cluster, apiserver)
	if err != nil {
		return nil, err
	}
	user := kubeconfigUser{Cert: cred.Cert, Key: cred.Key}
	if token != "" {
		user = kubeconfigUser{Token: token}
	}
	return writeWebhookConfig(cred.Cluster, kubeconfigHost{Server: endpoint, CA: cred.CA}, user)
}

func writeWebhookConfig(cluster string, host kubeconfigHost, user kubeconfigUser) ([]byte, error) {
	out, err := yaml.Marshal(kubeconfig{
		APIVersion:     "v1",
		Kind:           "Config",
		Clusters:       []namedCluster{{"retrial", host}},
		Users:          []namedUser{{cluster, user}},
		Contexts:       []namedContext{{"retrial", kubeconfigContext{"retrial", cluster}}},
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
	endpoint, err := Endpoint(serverURL, cred.Cluster, apiserver)
	if err != nil {
		return nil, err
	}
	const ca, cert, key = "ca.crt", "client.crt", "client.key"
	config, err := writeWebhookConfig(
		cred.Cluster,
		kubeconfigHost{Server: endpoint, CAFile: ca},
		kubeconfigUser{CertFile: cert, KeyFile: key},
	)
	if err != nil {
		return nil, err
	}
	return []WebhookFile{{ca, cred.CA, 0o644}, {key, cred.Key, 0o600}, {cert, cred.Cert, 0o644}, {FileWebhookConfig, config, 0o600}}, nil
}
