package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
	apiclient "github.com/retrial-io/retrial/query/client"
)

// isPlugin reports whether a program was run as one of kubectl's plugins, by the name it was called by.
func isPlugin(program string) bool { return strings.HasPrefix(filepath.Base(program), "kubectl-") }

// asPlugin makes of the program one of kubectl's plugins: it has kubectl's flags for the kubeconfig and its context. What commands ask is
// about the cluster and the namespace of that, unless flags say otherwise (ofContext).
func asPlugin(root *cobra.Command) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl retrial"}
	root.PersistentFlags().String("kubeconfig", "", "path to the kubeconfig file (default: KUBECONFIG, ~/.kube/config)")
	root.PersistentFlags().String("context", "", "name of the kubeconfig context to use (default: the current one)")
	// The only error is that there is no such flag.
	_ = root.RegisterFlagCompletionFunc("context", func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		var names []string
		if loaded, err := kubeconfig(c).RawConfig(); err == nil {
			for name := range loaded.Contexts {
				if strings.HasPrefix(name, begun) {
					names = append(names, name)
				}
			}
		}
		slices.Sort(names)
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// kubeconfig returns what kubectl would take by the command's flags.
func kubeconfig(c *cobra.Command) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Flag("kubeconfig").Value.String()
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: c.Flag("context").Value.String()})
}

// wholeCluster are resources of Kubernetes that are in no namespace.
var wholeCluster = strings.Fields(`namespaces nodes persistentvolumes componentstatuses users groups clusterroles clusterrolebindings
	customresourcedefinitions apiservices certificatesigningrequests signers storageclasses csidrivers csinodes volumeattachments
	priorityclasses runtimeclasses ingressclasses mutatingwebhookconfigurations validatingwebhookconfigurations
	validatingadmissionpolicies validatingadmissionpolicybindings flowschemas prioritylevelconfigurations tokenreviews
	subjectaccessreviews selfsubjectaccessreviews`)

// ofContext has a plugin's command ask about what the kubeconfig's context names, where no flag does: the cluster that is called like the
// context or like its cluster, if the asked server knows one; and the namespace, for requests of a resource that may be in one.
func (a *asker) ofContext(c *cobra.Command, args []string) error {
	if c.Root().PersistentFlags().Lookup("context") == nil || a.offline() {
		return nil
	}
	config := kubeconfig(c)
	loaded, err := config.RawConfig()
	if err != nil {
		return cli.ExitWith(cli.ExitUsage, fmt.Errorf("kubeconfig: %w", err))
	}
	name := cmp.Or(c.Flag("context").Value.String(), loaded.CurrentContext)
	current := loaded.Contexts[name]
	switch {
	case current != nil:
	case name != "":
		return cli.ExitWith(cli.ExitUsage, fmt.Errorf("kubeconfig has no context %q", name))
	default:
		return nil
	}
	if f := c.Flags().Lookup("cluster"); f != nil && !f.Changed {
		if cluster := a.knownCluster(c.Context(), name, current.Cluster); cluster != "" {
			if err := c.Flags().Set("cluster", cluster); err != nil {
				return err
			}
			fmt.Fprintln(a.Err, "hint: --cluster", cluster, "as the context says")
		}
	}
	f, all := c.Flags().Lookup("namespace"), c.Flags().Lookup("all-namespaces")
	if f == nil || f.Changed || all != nil && all.Changed || !namespacedRequest(c.Name(), args) {
		return nil
	}
	namespace := cmp.Or(current.Namespace, "default")
	fmt.Fprintln(a.Err, "hint: --namespace", cli.SafeLines(namespace), "as the context says")
	return c.Flags().Set("namespace", namespace)
}

// namespacedRequest reports whether the arguments of a command name a request that is made in a namespace.
func namespacedRequest(command string, args []string) bool {
	if command == "can" && len(args) > 0 {
		args = args[1:]
	}
	if len(args) < 2 {
		return false
	}
	resource, _, _ := strings.Cut(args[1], "/")
	resource, _, _ = strings.Cut(resource, ".")
	return resource != "" && !slices.Contains(wholeCluster, resource)
}

// knownCluster returns the first of some names that is a cluster's of which the running server knows something; "" for none.
func (a *asker) knownCluster(ctx context.Context, names ...string) string {
	client, err := a.running(ctx)
	if err != nil {
		return ""
	}
	defer client.Close()
	answer, err := apiclient.Ask(ctx, client, query.ClustersRequest{})
	if err != nil {
		return ""
	}
	known := answer.Quiet
	for _, c := range answer.Clusters {
		known = append(known, c.Name)
	}
	for _, name := range names {
		if slices.Contains(known, name) {
			return name
		}
	}
	return ""
}

// running returns a client of the server that runs, as the flags name it; it opens no store.
func (a *asker) running(ctx context.Context) (*apiclient.Client, error) {
	cfg, err := a.flags.Load()
	if err != nil {
		return nil, cli.ExitWith(cli.ExitUsage, err)
	}
	return apiclient.Dial(ctx, a.server, cfg.DataDir)
}
