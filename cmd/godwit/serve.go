package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"

	"godwit.dev/godwit/cmd/godwit/operate"
	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server/rootkey"
)

type serve struct {
	Config config.Config `kong:"embed,set='private_endpoints=false',set='function_network=public',set='cooldowns=true',set='log_level=info'"`

	RootKey        string `name:"root-key" placeholder:"FILE" help:"The key that what is on the disk is sealed with, outside of --data and readable by its owner only. godwit init makes one."`
	RootAccessKey  string `name:"root-access-key" placeholder:"FILE" help:"The access key of the root user, as godwit init makes it, sealed with the root key. GODWIT_ROOT_ACCESS_KEY_ID and GODWIT_ROOT_SECRET_ACCESS_KEY go before it."`
	AllowPlainHTTP bool   `name:"allow-plain-http" help:"Listen on an address that other machines reach without TLS, for a proxy that ends it. Requests are not secret on the way then."`

	Member member `embed:""`

	File kong.ConfigFlag `name:"config" required:"" placeholder:"FILE" help:"YAML file of settings, named as these flags are; godwit init makes one. Flags and GODWIT_* go before it."`
}

func (s *serve) config() config.Config {
	cfg := s.Config
	cfg.Clock, cfg.Store = config.SystemClock, config.PebbleStore
	cfg.Production, cfg.Enforce = true, true
	cfg.RootKey, cfg.AllowPlainHTTP = s.RootKey, s.AllowPlainHTTP
	return cfg
}

// Run serves unless a setting is missing or unsafe.
func (s *serve) Run(p *process) error {
	cfg := s.config()
	environ := os.Environ()
	cfg.Root = rootOfEnvironment()
	if err := bootstrap.ForbidCores(); err != nil {
		return fmt.Errorf("core dumps cannot be kept from being written: %w", err)
	}
	err := bootstrap.Load(&cfg, bootstrap.Files{Settings: string(s.File), AccessKey: s.RootAccessKey, Environ: environ})
	if more := s.Member.problems(&cfg); len(more) > 0 {
		if unsafe, ok := errors.AsType[*bootstrap.Unsafe](err); ok {
			more = append(unsafe.Problems, more...)
		}
		err = &bootstrap.Unsafe{Problems: more}
	}
	if err != nil {
		return err
	}
	if len(s.Member.ClusterPeers) > 0 {
		return p.serveMember(cfg, &s.Member)
	}
	return p.serve(cfg)
}

// rootOfEnvironment removes the root user's access key from the environment, so that functions
// and other child processes do not see it.
func rootOfEnvironment() config.Root {
	key := config.Root{AccessKeyID: os.Getenv(config.RootKeyVariable), Secret: os.Getenv(config.RootSecretVariable)}
	_, _ = os.Unsetenv(config.RootKeyVariable), os.Unsetenv(config.RootSecretVariable) // their names are valid
	return key
}

type initialise struct {
	Dir     string `env:"-" required:"" placeholder:"DIR" help:"Where to make godwit.yaml, root.key and root-access-key.json, none of which may be there."`
	From    string `env:"-" placeholder:"DIR" help:"Take root.key and root-access-key.json from there, as from a volume of secrets, and have them in --dir, in place of what is there, readable by this user only. No settings are made."`
	Data    string `env:"-" placeholder:"DIR" help:"The data directory of the server; by default that of --dir with -data behind it."`
	Account string `env:"-" default:"000000000000" placeholder:"DIGITS" help:"Account of the root user: 12 digits (${default})."`
	Output  string `env:"-" short:"o" enum:"text,json" default:"text" help:"Form of what is printed: ${enum} (${default})."`
}

// Validate is called by the parser.
func (i *initialise) Validate() error { return config.CheckAccount(i.Account) }

// Run makes the files, and prints the access key, once.
func (i *initialise) Run(p *process) error {
	if i.From != "" {
		return bootstrap.Take(i.From, i.Dir)
	}
	made, err := bootstrap.Init(i.Dir, i.Data, i.Account)
	if err != nil {
		return err
	}
	return printKey(p.stdout, i.Output, made.Key, func(w io.Writer) {
		fmt.Fprintf(w, "Made in %s: %s, %s and %s.\n", made.Dir, bootstrap.SettingsFile, bootstrap.RootKeyFile, bootstrap.AccessKeyFile)
		fmt.Fprintf(w, "Keep a copy of %s apart from the data: without it nothing that is sealed can be read.\n", bootstrap.RootKeyFile)
		fmt.Fprintf(w, "Start:  godwit serve --config %s\n", made.Settings)
	})
}

type keys struct {
	List operate.Keys `cmd:"" help:"List the access keys of a server's users, and when they were last used."`

	ResetRoot  resetRoot  `cmd:"" help:"Make another access key of the root user, in place of a lost one; a server that runs takes it when it starts again."`
	RotateRoot rotateRoot `cmd:"" help:"Put the data under another root key, also while a server with --admin-listen runs."`
}

type resetRoot struct {
	Dir    string `env:"-" required:"" placeholder:"DIR" help:"Where godwit init has made root.key and root-access-key.json."`
	Output string `env:"-" short:"o" enum:"text,json" default:"text" help:"Form of what is printed: ${enum} (${default})."`
}

// Run replaces the access key, and prints the new one, once.
func (r *resetRoot) Run(p *process) error {
	key, err := bootstrap.ResetAccessKey(r.Dir)
	if err != nil {
		return err
	}
	return printKey(p.stdout, r.Output, key, func(w io.Writer) {
		fmt.Fprintf(w, "Replaced %s; it counts from the next start on.\n", filepath.Join(r.Dir, bootstrap.AccessKeyFile))
	})
}

type rotateRoot struct {
	Dir  string `env:"-" required:"" placeholder:"DIR" help:"Where godwit init has made root.key and godwit.yaml, which names the data directory."`
	From string `env:"-" placeholder:"FILE" help:"The root key that the data is under now, such as development's, dev-root.key in the data directory: it is put under root.key. Without this root.key is replaced by a new one."`
}

// Run rotates. If it was interrupted, another run continues.
func (r *rotateRoot) Run(p *process) error {
	log := slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	kept, err := rootkey.RotateIn(r.Dir, r.From, log)
	if rootkey.IsOpen(err) && r.From == "" {
		kept, err = r.online(err)
	}
	if err != nil {
		return err
	}
	if kept != "" {
		_, err = fmt.Fprintf(p.stdout, "The data is under a new %s. Keep a copy of it apart from the data; the old one, %s, opens copies of the data from before.\n",
			bootstrap.RootKeyFile, kept)
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "The data is under %s; %s is of no use for it any more.\n", bootstrap.RootKeyFile, r.From)
	return err
}

// online makes the server that has the data open rotate.
func (r *rotateRoot) online(open error) (kept string, err error) {
	address, err := bootstrap.AdminAddress(r.Dir)
	if err != nil {
		return "", err
	}
	const path = "/_godwit/keys/rotate-root"
	if address == "" {
		return "", fmt.Errorf("%w; or have it rotate itself: at an admin-listen in godwit.yaml this command asks it, and there is none; else by POST %s, signed by the root user for the service godwit", open, path)
	}
	answer, err := (&http.Client{Timeout: time.Minute}).Post("http://"+address+path, "", nil)
	if err != nil {
		return "", fmt.Errorf("%w; and it does not answer at --admin-listen: %w", open, err)
	}
	defer answer.Body.Close()
	var said struct{ Kept, Error string }
	if err := json.NewDecoder(io.LimitReader(answer.Body, 64<<10)).Decode(&said); err != nil {
		return "", fmt.Errorf("the server at %s: %s: %w", address, answer.Status, err)
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the server at %s: %s", address, said.Error)
	}
	return said.Kept, nil
}

// printKey prints a new access key, with explanations for people.
func printKey(w io.Writer, form string, key config.Root, more func(io.Writer)) error {
	if form == "json" {
		return json.NewEncoder(w).Encode(struct {
			AccessKeyID     string `json:"accessKeyId"`
			SecretAccessKey string `json:"secretAccessKey"`
		}{key.AccessKeyID, key.Secret})
	}
	more(w)
	_, err := fmt.Fprintf(w, "The access key of the root user, which is not shown again:\n  AWS_ACCESS_KEY_ID=%s\n  AWS_SECRET_ACCESS_KEY=%s\n",
		key.AccessKeyID, key.Secret)
	return err
}
