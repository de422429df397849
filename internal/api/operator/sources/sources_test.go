package sources_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/api/operator/sources"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/shardtest"
	kept "godwit.dev/godwit/internal/shard/sources"
	"godwit.dev/godwit/internal/store/memory"
)

const (
	queue  = "arn:aws:sqs:us-east-1:000000000000:orders"
	topic  = "arn:aws:sns:us-east-1:000000000000:news"
	secret = "a secret of some length"
)

func open(t *testing.T) *sources.Sources {
	t.Helper()
	keys, _, err := seal.NewKeys(seal.NewRoot())
	if err != nil {
		t.Fatal(err)
	}
	j := journal.Open(journal.Options{Store: memory.New()})
	t.Cleanup(j.Close)
	k := kernel.New(kernel.Options{Journal: j, Clock: clock.NewVirtual(shardtest.Start), Logger: slog.New(slog.DiscardHandler)})
	m := kept.New(k, keys.Sealer(kept.Purpose))
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return sources.New(sources.Options{Module: m, Account: "000000000000"})
}

func put(name, target string) *sources.PutSource {
	return &sources.PutSource{Name: name, Target: target, Verification: sources.Verification{Kind: "api-key"}, Secrets: []string{secret}}
}

// Who puts a source needs the right to send to its target, and is who it publishes as,
// without the access key that he had.
func TestOwner(t *testing.T) {
	s, refused := open(t), errors.New("he may not")
	anna := &caller.Caller{Kind: caller.User, Account: "000000000000", ARN: "arn:aws:iam::000000000000:user/anna", AccessKey: "AKIAANNA"}
	var asked []string
	c := &rest.Call{Caller: anna, May: func(_ context.Context, action, resource string) error {
		asked = append(asked, action+" "+resource)
		if resource == topic {
			return refused
		}
		return nil
	}}
	if _, err := s.Put(t.Context(), c, put("news", topic)); !errors.Is(err, refused) {
		t.Errorf("to a topic that is forbidden: %v", err)
	}
	made, err := s.Put(t.Context(), c, put("shop", queue))
	if err != nil || made.Owner != anna.ARN || made.Path != "/in/shop" || made.Secrets != 1 || made.CreatedAt == nil {
		t.Errorf("%+v, %v", made, err)
	}
	if owner := s.Module.Find("shop").Owner; owner.AccessKey != "" || anna.AccessKey == "" {
		t.Errorf("the owner's key: %q, the caller's: %q", owner.AccessKey, anna.AccessKey)
	}
	if got, want := strings.Join(asked, ", "), "sns:Publish "+topic+", sqs:SendMessage "+queue; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
	made, err = s.Put(t.Context(), &rest.Call{}, put("open", topic))
	if err != nil || made.Owner != "arn:aws:iam::000000000000:root" {
		t.Errorf("where nobody is asked who he is: %+v, %v", made, err)
	}
	if s.Module.Find("news") != nil {
		t.Error("what was refused is there")
	}
}

// Answers never have a secret, and empty lists are lists.
func TestShown(t *testing.T) {
	s := open(t)
	for _, name := range []string{"b", "a", "c"} {
		if _, err := s.Put(t.Context(), &rest.Call{}, put(name, queue)); err != nil {
			t.Fatal(err)
		}
	}
	paused, err := s.Pause(t.Context(), nil, &sources.ChangeSource{Name: "b"})
	if err != nil || !paused.Paused {
		t.Errorf("%+v, %v", paused, err)
	}
	var names []string
	cursor := ""
	for pages := 1; ; pages++ {
		page, err := s.List(t.Context(), nil, &sources.ListSources{Limit: 2, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(page)
		if err != nil || strings.Contains(string(text), secret) || !strings.Contains(string(text), `"topics":[]`) || !strings.Contains(string(text), `"attributes":{}`) {
			t.Errorf("%s, %v", text, err)
		}
		for _, one := range page.Sources {
			names = append(names, one.Name)
		}
		if page.Next == nil {
			if pages != 2 {
				t.Errorf("%d pages", pages)
			}
			break
		}
		cursor = *page.Next
	}
	if got := strings.Join(names, ""); got != "abc" {
		t.Error(got)
	}
	resumed, err := s.Resume(t.Context(), nil, &sources.ChangeSource{Name: "b"})
	if err != nil || resumed.Paused {
		t.Errorf("%+v, %v", resumed, err)
	}
	if gone, err := s.Delete(t.Context(), nil, &sources.ChangeSource{Name: "b"}); err != nil || gone.Name != "b" {
		t.Errorf("%+v, %v", gone, err)
	}
	for what, call := range map[string]func() error{
		"get":    func() error { _, err := s.Get(t.Context(), nil, &sources.OneSource{Name: "b"}); return err },
		"pause":  func() error { _, err := s.Pause(t.Context(), nil, &sources.ChangeSource{Name: "b"}); return err },
		"resume": func() error { _, err := s.Resume(t.Context(), nil, &sources.ChangeSource{Name: "b"}); return err },
		"delete": func() error { _, err := s.Delete(t.Context(), nil, &sources.ChangeSource{Name: "b"}); return err },
	} {
		if err := call(); !errors.Is(err, kept.ErrNone) {
			t.Errorf("%s of none: %v", what, err)
		}
	}
	refusal, ok := errors.AsType[*rest.Refusal](func() error { _, err := s.Put(t.Context(), &rest.Call{}, put("x", "orders")); return err }())
	if !ok || refusal.Status != http.StatusBadRequest || !strings.Contains(refusal.Text, "target") {
		t.Errorf("%+v", refusal)
	}
}
