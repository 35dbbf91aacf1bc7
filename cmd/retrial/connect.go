package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/sleep"
	"github.com/retrial-io/retrial/server"
)

// What connect does:
//
//	registry (data/pki) ─▶ certificate ─┐
//	deploy/audit-policy.yaml ───────────┼─▶ DIR: kubeconfig, policy, flags, patches ─▶ numbered steps on the terminal
//	--for, --advertise-address ─────────┘
//	then:  running server ◀─ api/v1/connection, again and again ─▶ one line a step, until all are done
func newConnect(s cli.Streams) *cobra.Command {
	o := connectOptions{tick: everySecond}
	c := &cobra.Command{
		Use:   "connect NAME",
		Short: "Connect a cluster's kube-apiserver: write what it needs, say what to do, watch it arrive",
		Long: `Register a cluster and write what its kube-apiserver needs into a folder: the webhook's
kubeconfig (as secret as the key in it), an audit policy, the exact flags and, by --for, what
hands them to kube-apiserver; the unit of a follower of its audit log, which brings in what
the webhook loses; and the account by which its counters are read, which say how much that
is. Then print every step a person has to take, and wait until events arrive and are judged,
telling which step is missing.

A cluster that is registered already keeps its certificate. Nothing has to be running to
write the files, and waiting may be interrupted: everything stays, and retrial doctor NAME
tells the same later.`,
		Example: `  retrial connect prod --for kubeadm --advertise-address retrial.example
  retrial connect prod --for kubeadm --advertise-address retrial.example --apiserver cp-2 --output cp-2`,
		Args: cli.OneArg("NAME"),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), s, args[0]) },
	}
	o.flags = config.Bind(c.Flags())
	showFlags(c.Flags(), "config", "data-dir", "webhook-listen", "webhook-advertise")
	c.Flags().StringVar(&o.form, "for", doctor.FormGeneric, "how kube-apiserver is run: "+doctor.ChoiceHelp(doctor.Forms))
	c.Flags().StringVar(&o.address, "advertise-address", "",
		"HOST[:PORT] apiservers reach the receiver by (default: the first advertised name and the listener's port)")
	c.Flags().StringVar(&o.apiserver, "apiserver", "",
		"name of this apiserver, when the cluster has several: events do not say which one sent them")
	c.Flags().StringVarP(&o.out, "output", "o", "", "folder to write (default: retrial-NAME)")
	c.Flags().StringVar(&o.install, "install-dir", "",
		"folder in which kube-apiserver finds the files (default: the output folder; with --for kubeadm, k3s and rke2 one of theirs)")
	c.Flags().StringVar(&o.log, "audit-log", "",
		"audit log that kube-apiserver writes and the follower reads (default: a usual place by --for)")
	c.Flags().BoolVar(&o.noLog, "no-audit-log", false, "write no audit log, and follow none: what the webhook drops is lost")
	c.Flags().BoolVar(&o.noMetrics, "no-metrics", false, "do not read the apiserver's counters: how many events are missing is not known")
	c.Flags().StringVar(&o.policy, "policy", doctor.PolicyFull, "audit policy to write: "+doctor.ChoiceHelp(doctor.Policies()))
	c.Flags().BoolVar(&o.noWait, "no-wait", false, "write and print, and do not wait for events")
	cli.DurationVar(c, &o.timeout, "timeout", 15*time.Minute, "how long to wait until everything is connected; 0 is forever")
	for name, of := range map[string][]string{"for": doctor.ChoiceNames(doctor.Forms), "policy": doctor.ChoiceNames(doctor.Policies())} {
		// The only error is that there is no such flag.
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(of, cobra.ShellCompDirectiveNoFileComp))
	}
	return c
}

type connectOptions struct {
	flags                                  *config.Flags
	form, address, apiserver, out, install string
	log, policy                            string
	noLog, noMetrics, noWait               bool
	timeout                                time.Duration
	tick                                   ticker
}

// prepare checks everything that can be checked before anything is registered or written.
func (o *connectOptions) prepare(cfg config.Config, cluster string) (doctor.Plan, error) {
	p := doctor.Plan{Cluster: cluster, APIServer: o.apiserver, Metrics: !o.noMetrics, Config: cfg}
	usage := func(format string, args ...any) (doctor.Plan, error) {
		return p, cli.ExitWith(cli.ExitUsage, fmt.Errorf(format, args...))
	}
	if err := server.CheckName(cluster); err != nil {
		return usage("%q: %w", cluster, err)
	}
	var ok bool
	if p.Form, ok = doctor.Choose(doctor.Forms, o.form); !ok {
		return usage("invalid --for %q: want one of %s; generic writes flags for any kube-apiserver", o.form,
			strings.Join(doctor.ChoiceNames(doctor.Forms), ", "))
	}
	if p.Policy, ok = doctor.Choose(doctor.Policies(), o.policy); !ok {
		return usage("invalid --policy %q: want one of %s", o.policy, strings.Join(doctor.ChoiceNames(doctor.Policies()), ", "))
	}
	if o.noLog && o.log != "" {
		return usage("--audit-log and --no-audit-log exclude each other")
	}
	if o.apiserver != "" && len(validation.IsDNS1123Subdomain(o.apiserver)) > 0 {
		return usage("invalid --apiserver %q: want lower case letters, digits, '-' and '.'", o.apiserver)
	}
	if o.timeout < 0 {
		return usage("--timeout %s: must not be negative", o.timeout)
	}
	var err error
	if p.Host, p.Port, err = doctor.Advertised(o.address, cfg); err != nil {
		return usage("%w", err)
	}
	if p.Dir, err = filepath.Abs(cmp.Or(o.out, "retrial-"+cluster)); err != nil {
		return p, fmt.Errorf("--output: %w", err)
	}
	p.Install = cmp.Or(o.install, p.Form.Install, p.Dir)
	if !filepath.IsAbs(p.Install) {
		return usage("--install-dir %q: kube-apiserver needs an absolute path", o.install)
	}
	if !o.noLog {
		p.Log = cmp.Or(o.log, p.Form.Log, filepath.Join(p.Install, "log", "audit.log"))
	}
	if p.Log != "" && !filepath.IsAbs(p.Log) {
		return usage("--audit-log %q: kube-apiserver needs an absolute path", o.log)
	}
	for _, file := range []string{p.Dir, p.Install, p.Log} {
		if strings.ContainsFunc(file, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return usage("path %q: a flag cannot carry control characters", file)
		}
	}
	return p, nil
}

// ticker calls again, with a pause between two calls, until it returns true or an error, or ctx ends, whose cause is the error then.
type ticker func(ctx context.Context, again func() (done bool, err error)) error

func everySecond(ctx context.Context, again func() (bool, error)) error {
	for {
		if done, err := again(); done || err != nil {
			return err
		}
		if sleep.For(ctx, time.Second) != nil {
			return context.Cause(ctx)
		}
	}
}

func (o *connectOptions) run(ctx context.Context, s cli.Streams, cluster string) error {
	cfg, err := o.flags.Load()
	if err != nil {
		return cli.ExitWith(cli.ExitUsage, err)
	}
	p, err := o.prepare(doctor.AsRunning(ctx, cfg, cluster), cluster)
	if err != nil {
		return err
	}
	// Find out that a folder cannot be written before a cluster is registered.
	if err := doctor.CheckFolder(p.Dir); err != nil {
		return err
	}
	a, err := server.OpenIdentity(cfg)
	if err != nil {
		return err
	}
	cred, fresh, err := doctor.Register(a, cluster)
	if err != nil {
		return err
	}
	p.Fresh, p.Expires = fresh, cred.Expires.Format(time.DateOnly)
	if err := p.Reach(a); err != nil {
		return err
	}
	files, err := p.Files(cred)
	if err != nil {
		return err
	}
	if p.Kept, err = doctor.WriteFolder(p.Dir, files); err != nil {
		return err
	}
	steps := p.Steps()
	if _, err := doctor.WriteFolder(p.Dir, []doctor.File{{Name: doctor.FileSteps, Content: steps, Mode: 0o644}}); err != nil {
		return err
	}
	if _, err := s.Out.Write(steps); err != nil {
		return fmt.Errorf("print the steps: %w", err)
	}
	later := "`retrial doctor " + cluster + p.DataDir() + "`"
	if o.noWait {
		_, err := fmt.Fprintf(s.Out, "\n%s tells how far it is.\n", later)
		return err
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("not connected after %s", o.timeout))
		defer cancel()
	}
	fmt.Fprintf(s.Out, "\nWaiting for %s. Interrupt at any time: everything stays, and %s continues.\n\n", cluster, later)
	w := doctor.Waiting{Out: s.Out, Ask: doctor.RunningSteps(cfg, cluster), Declined: map[string]bool{doctor.StepFollowed: o.noLog,
		doctor.StepCounted: o.noMetrics}}
	switch err := o.tick(ctx, func() (bool, error) { return w.Look(ctx) }); {
	case err == nil:
		_, err := fmt.Fprintf(s.Out, "\n%s is connected.\n", cluster)
		return err
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("interrupted while waiting for: %s; everything stays, and %s continues", w.On, later)
	case ctx.Err() != nil:
		return fmt.Errorf("%w, waiting for: %s; everything stays, and %s continues", err, w.On, later)
	default:
		return err
	}
}
