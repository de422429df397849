package function

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/mutation"
)

// Who may invoke a function by its URL.
const (
	AuthNone = "NONE"    // anybody whom the function's policy admits without a signature
	AuthIAM  = "AWS_IAM" // who signs, and has permission
)

// URLIDLength is the length of a URL's id, in hexadecimal digits.
const URLIDLength = 32

// URL is the URL of a function or an alias.
type URL struct {
	// ID is its name in host names: URLIDLength hexadecimal digits in lower case, of which the first
	// two are the function's shard.
	ID       string    `json:"id"`
	Auth     string    `json:"auth"` // AuthNone or AuthIAM
	CORS     *CORS     `json:"cors,omitempty"`
	Created  time.Time `json:"created"`  // to the millisecond
	Modified time.Time `json:"modified"` // to the millisecond
}

// CORS is what browsers let pages of other origins do with a URL. A nil list was not given. It
// is immutable.
type CORS struct {
	Credentials *bool    `json:"credentials,omitempty"`
	Headers     []string `json:"headers,omitempty"` // that requests may have
	Methods     []string `json:"methods,omitempty"`
	Origins     []string `json:"origins,omitempty"`
	Expose      []string `json:"expose,omitempty"` // headers of answers that pages may read
	MaxAgeS     *int     `json:"maxAge,omitempty"` // 0–86,400
}

// empty reports that nothing is set.
func (c *CORS) empty() bool {
	return c.Credentials == nil && c.Headers == nil && c.Methods == nil && c.Origins == nil && c.Expose == nil && c.MaxAgeS == nil
}

// maxCORS bounds the texts in the CORS of all URLs of a function, in bytes: they are in its record, which each
// change of it writes. One URL cannot reach it.
const maxCORS = 1 << 20

// size is how many bytes the texts have.
func (c *CORS) size() (n int) {
	if c == nil {
		return 0
	}
	for _, texts := range [...][]string{c.Headers, c.Methods, c.Origins, c.Expose} {
		for _, text := range texts {
			n += len(text)
		}
	}
	return n
}

// checkCORS refuses a CORS for a qualifier that those of the other URLs leave no room for.
func (f *Function) checkCORS(qualifier string, c *CORS) error {
	all := c.size()
	for other, u := range f.urls {
		if other != qualifier {
			all += u.CORS.size()
		}
	}
	if all > maxCORS {
		return ErrURLTooLarge.With(maxCORS)
	}
	return nil
}

// QualifiedURL is a URL with what it invokes.
type QualifiedURL struct {
	Function  arn.ARN
	Qualifier string // an alias; empty: the function
	URL
}

// Target is the function, or its alias.
func (u *QualifiedURL) Target() arn.ARN { return u.Function.Qualify(u.Qualifier) }

// CreateURL is the command that gives a function or an alias a URL.
type CreateURL struct {
	Function  arn.ARN
	Qualifier string // an alias; empty: the function
	ID        string
	Auth      string
	CORS      *CORS // nil: none
}

// CreateURL makes a URL. Errors: ResourceNotFound for an unknown function or alias;
// ResourceConflict if there is one; InvalidParameter for too much CORS.
func (s *State) CreateURL(now time.Time, cmd CreateURL, b *mutation.Batch) (QualifiedURL, error) {
	f, ok := s.functions[cmd.Function]
	if !ok {
		return QualifiedURL{}, ErrURLOfNothing
	}
	if _, there := f.urls[cmd.Qualifier]; there {
		return QualifiedURL{}, ErrURLExists.With(cmd.Function.Qualify(cmd.Qualifier))
	}
	if !f.mayHaveURL(cmd.Qualifier) {
		return QualifiedURL{}, ErrURLOfNothing
	}
	if err := f.checkCORS(cmd.Qualifier, cmd.CORS); err != nil {
		return QualifiedURL{}, err
	}
	now = now.UTC().Truncate(time.Millisecond)
	u := URL{ID: cmd.ID, Auth: cmd.Auth, CORS: orNone(cmd.CORS), Created: now, Modified: now}
	s.setURL(f, cmd.Qualifier, u)
	s.put(b, f)
	return QualifiedURL{f.ARN, cmd.Qualifier, u}, nil
}

// orNone is a configuration, or nil for one in which nothing is set: so clients remove it.
func orNone(c *CORS) *CORS {
	if c == nil || c.empty() {
		return nil
	}
	return c
}

// mayHaveURL reports whether a qualifier is the function itself or an alias.
func (f *Function) mayHaveURL(qualifier string) bool {
	if qualifier == "" {
		return true
	}
	_, ok := f.Alias(qualifier)
	return ok
}

// UpdateURL is the command that changes a URL.
type UpdateURL struct {
	Function  arn.ARN
	Qualifier string
	Auth      string // empty: unchanged
	CORS      *CORS  // nil: unchanged; else it replaces all that was set
}

// UpdateURL changes a URL. Errors: ResourceNotFound; InvalidParameter for too much CORS.
func (s *State) UpdateURL(now time.Time, cmd UpdateURL, b *mutation.Batch) (QualifiedURL, error) {
	u, err := s.ShowURL(cmd.Function, cmd.Qualifier)
	if err != nil {
		return QualifiedURL{}, err
	}
	f := s.functions[cmd.Function]
	u.Auth = cmp.Or(cmd.Auth, u.Auth)
	if cmd.CORS != nil {
		if err := f.checkCORS(cmd.Qualifier, cmd.CORS); err != nil {
			return QualifiedURL{}, err
		}
		u.CORS = orNone(cmd.CORS)
	}
	u.Modified = now.UTC().Truncate(time.Millisecond)
	s.setURL(f, cmd.Qualifier, u.URL)
	s.put(b, f)
	return u, nil
}

// ShowURL is the URL of a function or an alias. Errors: ResourceNotFound, also if it has none.
func (s *State) ShowURL(name arn.ARN, qualifier string) (QualifiedURL, error) {
	if f, ok := s.functions[name]; ok {
		if u, ok := f.urls[qualifier]; ok {
			return QualifiedURL{name, qualifier, u}, nil
		}
	}
	return QualifiedURL{}, ErrURLAbsent
}

// DeleteURL removes a URL. Errors: ResourceNotFound.
func (s *State) DeleteURL(name arn.ARN, qualifier string, b *mutation.Batch) error {
	if _, err := s.ShowURL(name, qualifier); err != nil {
		return err
	}
	f := s.functions[name]
	s.forgetURL(f, qualifier)
	s.put(b, f)
	return nil
}

// URLs is a page of the URLs of a function and its aliases, ordered by qualifier: up to limit
// after the qualifier after; begun says that the page is not the first. more says that there are
// further ones. Errors: ResourceNotFound.
func (s *State) URLs(name arn.ARN, begun bool, after string, limit int) (page []QualifiedURL, more bool, err error) {
	f, ok := s.functions[name]
	if !ok {
		return nil, false, ErrURLOfNothing
	}
	for _, qualifier := range slices.Sorted(maps.Keys(f.urls)) {
		if begun && qualifier <= after {
			continue
		}
		if len(page) == limit {
			return page, true, nil
		}
		page = append(page, QualifiedURL{name, qualifier, f.urls[qualifier]})
	}
	return page, false, nil
}

// FindURL finds a URL by its id.
func (s *State) FindURL(id string) (QualifiedURL, bool) {
	u, ok := s.urls[id]
	if !ok {
		return QualifiedURL{}, false
	}
	return QualifiedURL{u.Function, u.Qualifier, s.functions[u.Function].urls[u.Qualifier]}, true
}

// urlOwner is what a URL invokes.
type urlOwner struct {
	Function  arn.ARN
	Qualifier string
}

func (s *State) setURL(f *Function, qualifier string, u URL) {
	if f.urls == nil {
		f.urls = map[string]URL{}
	}
	f.urls[qualifier] = u
	s.urls[u.ID] = urlOwner{f.ARN, qualifier}
}

// forgetURL drops a URL, and reports whether there was one.
func (s *State) forgetURL(f *Function, qualifier string) bool {
	u, there := f.urls[qualifier]
	delete(f.urls, qualifier)
	delete(s.urls, u.ID)
	return there
}
