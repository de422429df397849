// Package pushing makes the sender of push messages that the settings ask for.
package pushing

import (
	"fmt"
	"net/http"
	"path/filepath"

	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	pushsender "godwit.dev/godwit/internal/deliver/push"
	"godwit.dev/godwit/internal/platform"
)

// Apple's and Google's own gateways.
const (
	apns        = "https://api.push.apple.com"
	apnsSandbox = "https://api.sandbox.push.apple.com"
	fcm         = "https://fcm.googleapis.com"
)

// Pushing sends push messages, or keeps them.
type Pushing struct {
	Sender *pushsender.Sender
	outbox *pushsender.Outbox // nil: all are sent
	close  []func()
}

// Open makes it. In development, what has no gateway is kept in an outbox.
func Open(c config.Config, now clock.Clock, endpoints pushsender.Endpoints, o pushsender.Connections) (*Pushing, error) {
	p := &Pushing{}
	gateways := map[string]pushsender.Gateway{}
	for _, g := range [...]struct {
		platform, set, own string
		open               func(string) (pushsender.Gateway, func())
	}{
		{platform.APNs, c.PushAPNsURL, apns, ofAPNs(o)},
		{platform.APNsSandbox, c.PushAPNsSandboxURL, apnsSandbox, ofAPNs(o)},
		{platform.FCM, c.PushFCMURL, fcm, ofFCM(o)},
	} {
		at := g.set
		if at == "" && c.Production {
			at = g.own
		}
		if at != "" {
			gateway, end := g.open(at)
			gateways[g.platform], p.close = gateway, append(p.close, end)
			continue
		}
		if err := p.keep(c, now); err != nil {
			return nil, err
		}
		gateways[g.platform] = p.outbox
	}
	p.Sender = pushsender.New(pushsender.Options{Endpoints: endpoints, Gateways: gateways, Clock: now})
	return p, nil
}

func ofAPNs(o pushsender.Connections) func(string) (pushsender.Gateway, func()) {
	return func(at string) (pushsender.Gateway, func()) {
		g := pushsender.NewAPNs(at, o)
		return g, g.Close
	}
}

func ofFCM(o pushsender.Connections) func(string) (pushsender.Gateway, func()) {
	return func(at string) (pushsender.Gateway, func()) {
		g := pushsender.NewFCM(at, o)
		return g, g.Close
	}
}

// keep opens the outbox, once.
func (p *Pushing) keep(c config.Config, now clock.Clock) (err error) {
	if p.outbox != nil {
		return nil
	}
	dir := ""
	if c.Store != config.MemoryStore {
		dir = filepath.Join(c.DevFiles(), "outbox", "push")
	}
	if p.outbox, err = pushsender.OpenOutbox(dir, now); err != nil {
		return fmt.Errorf("the outbox of push messages cannot be opened: %w", err)
	}
	return nil
}

// Handler answers operators who look into the outbox.
func (p *Pushing) Handler() http.Handler {
	if p.outbox == nil {
		return admin.ListPushes(nil)
	}
	return admin.ListPushes(p.outbox)
}

// Close ends connections.
func (p *Pushing) Close() {
	for _, end := range p.close {
		end()
	}
}
