package identity

import (
	"fmt"
	"net/url"
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
	}
	namedUser struct {
		Name string         `json:"name"`
		User kubeconfigUser `json:"user"`
	}
	kubeconfigUser struct {
		Cert  []byte `json:"client-certificate-data,omitempty"`
		Key   []byte `json:"client-key-data,omitempty"`
		Token string `json:"token,omitempty"`
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
// receiver's base, such as https://retrial.example:9443; apiserver may be empty and
// otherwise tells several apiservers of one cluster apart, since an event does not say
// which one sent it. There is no query string in it: apiservers drop one.
func Endpoint(serverURL, cluster, apiserver string) (string, error) {
	u, err := url.Parse(serverURL)
	if err != nil {
		return "", fmt.Errorf("endpoint of cluster %s: %w", cluster, err)
	}
	if u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return "", fmt.Errorf("endpoint of cluster %s: %q is no http or https URL", cluster, serverURL)
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", fmt.Errorf("endpoint of cluster %s: %q: only scheme, host and path may be given", cluster, u.Redacted())
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

// Kubeconfig returns the file for kube-apiserver's --audit-webhook-config-file with the
// certificate last issued for the cluster embedded. It is as secret as the key in it.
func (r *Registry) Kubeconfig(cluster, serverURL string) ([]byte, error) {
	cred, err := r.Credentials(cluster)
	if err != nil {
		return nil, err
	}
	return WebhookConfig(serverURL, "", cred, "")
}

// WebhookConfig is Kubeconfig for given credentials, one apiserver name, or a token in
// place of the certificate (when token is not empty).
func WebhookConfig(serverURL, apiserver string, cred Credentials, token string) ([]byte, error) {
	endpoint, err := Endpoint(serverURL, cred.Cluster, apiserver)
	if err != nil {
		return nil, err
	}
	user := kubeconfigUser{Cert: cred.Cert, Key: cred.Key}
	if token != "" {
		user = kubeconfigUser{Token: token}
	}
	out, err := yaml.Marshal(kubeconfig{
		APIVersion:     "v1",
		Kind:           "Config",
		Clusters:       []namedCluster{{"retrial", kubeconfigHost{endpoint, cred.CA}}},
		Users:          []namedUser{{cred.Cluster, user}},
		Contexts:       []namedContext{{"retrial", kubeconfigContext{"retrial", cred.Cluster}}},
		CurrentContext: "retrial",
	})
	if err != nil {
		return nil, fmt.Errorf("write webhook configuration of cluster %s: %w", cred.Cluster, err)
	}
	return out, nil
}
