// Package senders makes what delivers to the endpoints of each protocol, as the settings
// ask for it.
package senders

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/deliver"
	httpsender "godwit.dev/godwit/internal/deliver/http"
	lambdasender "godwit.dev/godwit/internal/deliver/lambda"
	mailsender "godwit.dev/godwit/internal/deliver/mail"
	pushsender "godwit.dev/godwit/internal/deliver/push"
	sqssender "godwit.dev/godwit/internal/deliver/sqs"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/publicnet"
	"godwit.dev/godwit/internal/server/mailing"
	"godwit.dev/godwit/internal/server/pushing"
	"godwit.dev/godwit/internal/server/texting"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/texts"
	"godwit.dev/godwit/internal/topic"
)

// Options are what senders work with.
type Options struct {
	Config config.Config
	Clock  clock.Clock
	Engine *shard.Engine
	Ledger *texts.Module // of text messages
	// Receipt is called with what became of text messages that were taken, and Ended with the same as
	// events of deliveries.
	Receipt func(state string)
	Ended   func(*deliver.Event)
	// PublicURL is what this server's links begin with.
	PublicURL string
	// Trust is whom to believe to be the host that was asked for; nil: as the system does.
	Trust *tls.Config
	// Own are the ports of this server, which no endpoint may be at.
	Own publicnet.Ports
	// Connections bounds how many there are to endpoints.
	Connections *limit.Slots
	// Dial makes the connections to HTTP endpoints; nil: over the network.
	Dial limit.Dial
	// Mails takes mails further; nil: what the settings name does.
	Mails mailsender.Transport
}

// Senders deliver.
type Senders struct {
	ByProtocol map[topic.Protocol]deliver.Sender
	Mails      *mailing.Mailing
	Pushes     *pushing.Pushing
	Texts      *texting.Texting

	closers []func()
}

// Open makes the senders of all protocols. Errors: settings that cannot be carried out.
func Open(o Options) (*Senders, error) {
	s := &Senders{ByProtocol: map[topic.Protocol]deliver.Sender{
		topic.SQS: sqssender.New(o.Engine), topic.Lambda: lambdasender.New(o.Engine),
	}}
	s.openWeb(&o)
	if err := errors.Join(s.openMails(&o), s.openTexts(&o), s.openPushes(&o)); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Senders) openWeb(o *Options) {
	web := httpsender.New(httpsender.Options{
		AllowPrivate: o.Config.AllowPrivateEndpoints, Own: o.Own, Retry429: o.Config.Retry429,
		RetryAfter: o.Config.RetryAfter, HostLimit: o.Config.EndpointConcurrency, TLS: o.Trust,
		Connections: o.Connections, Dial: o.Dial,
	})
	s.closers = append(s.closers, web.Close)
	s.ByProtocol[topic.HTTP], s.ByProtocol[topic.HTTPS] = web, web
}

func (s *Senders) openMails(o *Options) (err error) {
	if s.Mails, err = mailing.Open(o.Config, o.Clock, o.Trust, o.Engine.Injected, o.Mails); err != nil {
		return err
	}
	s.closers = append(s.closers, s.Mails.Close)
	s.ByProtocol[topic.Email], s.ByProtocol[topic.EmailJSON] = s.Mails.Sender, s.Mails.Sender
	return nil
}

func (s *Senders) openPushes(o *Options) (err error) {
	s.Pushes, err = pushing.Open(o.Config, o.Clock, o.Engine, pushsender.Connections{
		AllowPrivate: o.Config.AllowPrivateEndpoints, Own: o.Own, TLS: o.Trust, Slots: o.Connections, Dial: o.Dial,
	})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, s.Pushes.Close)
	s.ByProtocol[topic.Application] = s.Pushes.Sender
	return nil
}

func (s *Senders) openTexts(o *Options) (err error) {
	s.Texts, err = texting.Open(texting.Options{Config: o.Config, Clock: o.Clock, Ledger: o.Ledger, Injected: o.Engine.Injected, Trust: o.Trust, Own: o.Own, Receipt: o.Receipt, Ended: o.Ended, PublicURL: o.PublicURL})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, s.Texts.Close)
	s.ByProtocol[topic.SMS] = s.Texts.Sender
	return nil
}

// Close ends the connections of all senders.
func (s *Senders) Close() {
	for _, c := range s.closers {
		c()
	}
}

// Trust reads the file of the certificates that endpoints may have besides the system's;
// nil where file is empty: as the system does.
func Trust(file string) (*tls.Config, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // as package tls has it
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the endpoints' certificates cannot be read (--endpoint-ca): %w", err)
	}
	roots, err := httpsender.Roots(pem)
	if err != nil {
		return nil, fmt.Errorf("%s (--endpoint-ca): %w", file, err)
	}
	return &tls.Config{RootCAs: roots}, nil
}
