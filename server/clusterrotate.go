package server

import (
	"errors"
	"fmt"
	"time"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/ingest/identity"
)

// Rotate issues another certificate for a cluster and writes its configuration. revokeOld refuses earlier ones at once, else Finish does.
func (c Clusters) Rotate(name string, k WebhookFile, revokeOld bool) error {
	a, err := c.known()
	if err != nil {
		return err
	}
	if err := c.write(k, a, name, func(name string) (identity.Credentials, error) {
		return a.Registry().Rotate(name, revokeOld)
	}); err != nil {
		return err
	}
	if !revokeOld {
		fmt.Fprintf(c.Streams.Err,
			"the earlier certificates stay accepted; when all its apiservers have the new one: retrial cluster rotate %s --finish\n", name)
	}
	return nil
}

// Finish revokes all but the newest certificate of a cluster. Without force it returns an error if an earlier one was used within quiet.
func (c Clusters) Finish(name string, quiet time.Duration, force bool) error {
	a, err := c.known()
	if err != nil {
		return err
	}
	if err := a.Registry().Finish(name, quiet, force); err != nil {
		return advise(err)
	}
	fmt.Fprintf(c.Streams.Err, "cluster %s: only its newest certificate is accepted now\n", name)
	return nil
}

// RenewServer issues another certificate for the webhook's listener.
func (c Clusters) RenewServer() error {
	a, err := c.known()
	if err != nil {
		return err
	}
	if err := a.RenewServer(); err != nil {
		return err
	}
	_, server, err := a.Certificates()
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Streams.Err, "the receiver's certificate is new, valid until %s; a running server uses it from the next connection on\n",
		server.NotAfter.Format(time.DateOnly))
	return nil
}

// RotateAuthority makes another authority, trusted beside the old one, and prints what to do.
func (c Clusters) RotateAuthority() error {
	a, err := c.known()
	if err != nil {
		return err
	}
	rotation, err := a.BeginRotation()
	if err != nil {
		return err
	}
	clusters, err := a.Registry().List()
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Streams.Err, "a new authority, valid until %s, is trusted beside the old one, which ends %s.\nNow give every cluster a "+
		"webhook configuration with both:\n",
		rotation.New.NotAfter.Format(time.DateOnly), rotation.Old.NotAfter.Format(time.DateOnly))
	for _, one := range clusters {
		if one.Revoked == nil {
			fmt.Fprintf(c.Streams.Err, "  retrial cluster rotate %s%s --output %s.kubeconfig\n", one.Name,
				doctor.Site{Config: c.Config}.DataDir(), one.Name)
		}
	}
	fmt.Fprintf(c.Streams.Err, "and when all of them use it:\n  retrial cluster rotate --authority --finish%s\n",
		doctor.Site{Config: c.Config}.DataDir())
	return nil
}

// AbortAuthority gives up the change of the authority.
func (c Clusters) AbortAuthority(force bool) error {
	a, err := c.known()
	if err != nil {
		return err
	}
	if err := a.AbortRotation(force); err != nil {
		return advise(err)
	}
	fmt.Fprintln(c.Streams.Err, "given up: the authority is the one before")
	return nil
}

// FinishAuthority trusts the new authority alone. Without force it returns an error if a certificate of the old one was used within quiet.
func (c Clusters) FinishAuthority(quiet time.Duration, force bool) error {
	a, err := c.known()
	if err != nil {
		return err
	}
	if err := a.FinishRotation(quiet, force); err != nil {
		return advise(err)
	}
	authority, _, err := a.Certificates()
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Streams.Err, "finished: the authority is the new one, valid until %s; the old one and all it signed are refused\n",
		authority.NotAfter.Format(time.DateOnly))
	return nil
}

// advise adds to the refusal of a step what --force does.
func advise(err error) error {
	if errors.Is(err, identity.ErrInUse) {
		return fmt.Errorf("%w\nonce they are changed over, try again; --force does it now, and cuts off who is not", err)
	}
	return err
}
