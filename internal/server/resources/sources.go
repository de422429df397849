package resources

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Source is what PutSource of the operator API takes, member by member. Of its secrets each is
// text, or {env: NAME} for the value of an environment variable.
type Source map[string]any

// members are those of a source that a file may have.
var members = []string{"name", "target", "verification", "secrets", "mapping", "limits", "paused"}

// UnmarshalYAML implements yaml.Unmarshaler: maps in it are maps, and no sources.
func (s *Source) UnmarshalYAML(node *yaml.Node) error { return node.Decode((*map[string]any)(s)) }

func (s Source) name() string {
	name, _ := s["name"].(string)
	return name
}

func (s Source) check() error {
	if s.name() == "" {
		return errors.New("it has no name")
	}
	for _, member := range sortedKeys(s) {
		if !slices.Contains(members, member) {
			return fmt.Errorf("%s has %s, which no source has", s.name(), member)
		}
	}
	if s["secrets"] == nil {
		return nil
	}
	secrets, ok := s["secrets"].([]any)
	for _, one := range secrets {
		ok = ok && (variable(one) != "" || isText(one))
	}
	if !ok {
		return fmt.Errorf("%s: want secrets to be a list of texts, or of {env: NAME}", s.name())
	}
	return nil
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

// variable is the environment variable that a secret is in; "": it is in none.
func variable(secret any) string {
	in, _ := secret.(map[string]any)
	name, _ := in["env"].(string)
	if len(in) != 1 {
		return ""
	}
	return name
}

// secrets are those that a file has, or names. An error is a Refusal.
func (s Source) secrets() ([]string, error) {
	listed, _ := s["secrets"].([]any)
	var found []string
	for _, one := range listed {
		name := variable(one)
		if name == "" {
			found = append(found, one.(string)) // which check has seen
			continue
		}
		value := os.Getenv(name)
		if value == "" {
			return nil, &Refusal{Action: "PutSource", Text: "the environment variable " + name + " is not set"}
		}
		found = append(found, value)
	}
	return found, nil
}

// moved has the ARNs changed by text; secrets stay as they are.
func (s Source) moved(text func(string) string) Source {
	to := Source(movedValue(map[string]any(s), text).(map[string]any))
	if secrets, ok := s["secrets"]; ok {
		to["secrets"] = secrets
	}
	return to
}

// operator asks for an operation of Godwit's operator API. Another server than Godwit answers
// with a Refusal without a code.
func (s *Server) operator(ctx context.Context, action, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	r, err := request(ctx, method, cmp.Or(s.OperatorEndpoint, s.Endpoint), "/_godwit/v1/"+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	by := s.HTTP
	if s.OperatorHTTP != nil {
		by = s.OperatorHTTP
	}
	status, text, err := s.send(ctx, by, "godwit", r, body)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		var e struct{ Code, Error string }
		_ = json.Unmarshal(text, &e) // else it says its status
		return &Refusal{Action: action, Code: e.Code, Text: e.Error, Status: status}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(out); err != nil {
		return &Refusal{Action: action, Text: "the answer is none of Godwit's", Status: status}
	}
	return nil
}

// sources are all sources of a server, as it shows them.
func (s *Server) sources(ctx context.Context) (all []Source, err error) {
	query := url.Values{"limit": {"1000"}}
	for range maxPages {
		var out struct {
			Sources []Source
			Next    string
		}
		if err := s.operator(ctx, "ListSources", http.MethodGet, "sources?"+query.Encode(), nil, &out); err != nil {
			return nil, err
		}
		all = append(all, out.Sources...)
		if out.Next == "" {
			break
		}
		query.Set("cursor", out.Next)
	}
	return all, nil
}

// sources reads the sources, of a server that has any.
func (e *exporting) sources(ctx context.Context) error {
	all, err := e.Server.sources(ctx)
	if refused, ok := errors.AsType[*Refusal](err); ok {
		if refused.Code != "" {
			e.missed = append(e.missed, "sources: "+refused.Error())
		}
		return nil // it is no Godwit: it has none
	}
	if err != nil {
		return err
	}
	for _, is := range all {
		one := Source{}
		for _, member := range members {
			if value := said(plain(is[member])); value != nil && member != "secrets" {
				one[member] = value
			}
		}
		if n := written(is["secrets"]); n != "0" && n != "" {
			e.missed = append(e.missed, fmt.Sprintf("secrets of source %s: they are never shown", one.name()))
		}
		e.set.Sources = append(e.set.Sources, one)
	}
	return nil
}

// said leaves out what says no more than its absence.
func said(v any) any {
	switch v := v.(type) {
	case string:
		if v == "" {
			return nil
		}
	case bool:
		if !v {
			return nil
		}
	case int64:
		if v == 0 {
			return nil
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
	case map[string]any:
		out := map[string]any{}
		for name, value := range v {
			if value = said(value); value != nil {
				out[name] = value
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	}
	return v
}

// sources makes sources, whose targets are there. Secrets are put with a source that is new or
// that has another number of them: a server shows no more of those that it has.
func (a *Applying) sources(ctx context.Context, set *Set) error {
	if len(set.Sources) == 0 {
		return nil
	}
	all, err := a.To.sources(ctx)
	if err != nil {
		return err
	}
	there := map[string]Source{}
	for _, source := range all {
		there[source.name()] = source
	}
	for _, want := range set.Sources {
		is, ok := there[want.name()]
		changes := want.differences(is)
		if ok && len(changes) == 0 {
			continue
		}
		if !ok {
			changes = []Change{{New: true, What: "source " + want.name()}}
		}
		do := func() error { return a.putSource(ctx, is, want) }
		for _, c := range changes {
			if err := a.change(c, do); err != nil {
				return err
			}
			do = nil // the source is put as a whole
		}
	}
	return nil
}

// differences are those of what is wanted from what there is.
func (s Source) differences(is Source) (all []Change) {
	what := "source " + s.name()
	for _, member := range sortedKeys(s) {
		if member == "secrets" {
			if s.newSecrets(is) {
				all = append(all, Change{What: what, Name: "number of secrets", Was: written(is["secrets"]), To: fmt.Sprint(len(s["secrets"].([]any)))}) // a list, as check has seen
			}
			continue
		}
		if to := merged(is[member], s[member]); written(said(plain(is[member]))) != written(said(plain(to))) {
			all = append(all, Change{What: what, Name: member, Was: written(said(plain(is[member]))), To: written(said(plain(to)))})
		}
	}
	return all
}

// merged is what there is with what is wanted in its place; what is not wanted is left.
func merged(is, want any) any {
	to, ok := want.(map[string]any)
	was, also := is.(map[string]any)
	if !ok || !also {
		return want
	}
	out := maps.Clone(was)
	for name, value := range to {
		out[name] = merged(was[name], value)
	}
	return out
}

func (a *Applying) putSource(ctx context.Context, is, want Source) error {
	in := map[string]any{}
	for _, member := range members {
		to, ok := want[member]
		if ok {
			to = merged(is[member], to)
		} else {
			to = is[member]
		}
		if to = said(plain(to)); to != nil && member != "secrets" {
			in[member] = to
		}
	}
	if want.newSecrets(is) {
		secrets, err := want.secrets()
		if err != nil {
			return err
		}
		in["secrets"] = secrets
	}
	var out Source
	return a.To.operator(ctx, "PutSource", http.MethodPost, "sources", in, &out)
}

// newSecrets reports that the secrets of a file are to be put: those that a server has are of
// another number, or cannot be read.
func (s Source) newSecrets(is Source) bool {
	listed, ok := s["secrets"].([]any)
	return ok && (is["problem"] != nil || written(is["secrets"]) != fmt.Sprint(len(listed)))
}
