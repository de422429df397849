package function

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
)

// A function, a numbered version and an alias have one record each:
//
//	shard 'L' 'f' account/region/name                → version, JSON of functionRecord
//	shard 'L' 'v' account/region/name 0x00 number    → version, JSON of versionRecord
//	shard 'L' 'a' account/region/name 0x00 alias     → version, JSON of Alias
//
// shard is 2 bytes and number 8, big-endian. No name has a slash or a zero byte, so that keys
// sort by account, region, name, and each kind of a function's records is one range.
const (
	space       = keyspace.Functions
	functionTag = keyspace.FunctionRecords
	versionTag  = keyspace.FunctionVersions
	aliasTag    = keyspace.FunctionAliases
	version     = 1
)

// ErrRecord reports a record that this version did not write.
var ErrRecord = errors.New("function: unreadable record")

type functionRecord struct {
	Incarnation uint64                  `json:"incarnation"`
	Tags        map[string]string       `json:"tags,omitempty"`
	Reserved    *int                    `json:"reserved,omitempty"`
	Latest      versionRecord           `json:"latest"`
	Next        *versionRecord          `json:"next,omitempty"`
	Last        uint64                  `json:"last,omitempty"`
	Changed     bool                    `json:"changed,omitempty"`
	ReadyAt     int64                   `json:"settleAt,omitempty"` // Unix milliseconds
	Policies    map[string][]Permission `json:"policies,omitempty"`

	EventInvokes map[string]EventInvoke `json:"eventInvokes,omitempty"`
	URLs         map[string]URL         `json:"urls,omitempty"`
}

type versionRecord struct {
	Config        *Config    `json:"config"`
	Code          codeRecord `json:"code"`
	Revision      string     `json:"revision"`
	ReadyRevision string     `json:"settled,omitempty"`
	Modified      int64      `json:"modified"` // Unix milliseconds
	Pending       bool       `json:"pending,omitempty"`
	Token         string     `json:"token,omitempty"`
	// Sealed is the configuration's environment, where that is sealed.
	Sealed []byte `json:"sealed,omitempty"`
}

type codeRecord struct {
	Upload uint64 `json:"upload,omitempty"`
	SHA256 []byte `json:"sha256,omitempty"`
	Size   int64  `json:"size,omitempty"`
	// Unzipped is missing in records of earlier versions of this program.
	Unzipped int64  `json:"unzipped,omitempty"`
	URL      string `json:"url,omitempty"`
	// Sealed is the encrypted URL if it has a password; then URL is empty.
	Sealed []byte `json:"sealed,omitempty"`
}

// Prefixes are the key prefixes of a shard's records.
func Prefixes(shard uint16) [][]byte {
	var all [][]byte
	for _, tag := range [...]byte{functionTag, versionTag, aliasTag} {
		all = append(all, append(binary.BigEndian.AppendUint16(nil, shard), space, tag))
	}
	return all
}

// Reserving are the functions with reserved concurrency.
func (s *State) Reserving() (all []*Function) {
	for _, f := range s.order.Items {
		if f.Reserved != nil {
			all = append(all, f)
		}
	}
	return all
}

// Load loads one record, in the order of Prefixes. After an error the state is unusable.
func (s *State) Load(key, value []byte) error {
	if len(key) < 4 || binary.BigEndian.Uint16(key) != s.shard || key[2] != space || len(value) == 0 || value[0] != version {
		return fmt.Errorf("%w: key %q", ErrRecord, key)
	}
	name, rest, inside := bytes.Cut(key[4:], []byte{0})
	owner, ok := parseName(string(name))
	if !ok || inside == (key[3] == functionTag) {
		return fmt.Errorf("%w: key %q", ErrRecord, key)
	}
	if err := s.load(key[3], owner, rest, value[1:]); err != nil {
		return fmt.Errorf("%w: key %q: %w", ErrRecord, key, err)
	}
	return nil
}

func (s *State) load(tag byte, owner arn.ARN, rest, value []byte) error {
	if tag == functionTag {
		return s.loadFunction(owner, value)
	}
	f, ok := s.functions[owner]
	if !ok {
		return errors.New("its function is not there")
	}
	switch {
	case tag == versionTag && len(rest) == 8:
		var r versionRecord
		if err := json.Unmarshal(value, &r); err != nil {
			return err
		}
		v, err := s.decode(f.ARN, &r, binary.BigEndian.Uint64(rest))
		if err != nil {
			return err
		}
		v.build = s.newBuild()
		s.change(f, func() {
			f.versions.Add(v)
			s.use(f, v, +1)
		})
		return nil
	case tag == aliasTag && len(rest) > 0:
		a := &Alias{Name: string(rest)}
		if err := json.Unmarshal(value, a); err != nil {
			return err
		}
		f.aliases.Add(a)
		return nil
	}
	return errors.New("of an unknown kind")
}

func (s *State) loadFunction(name arn.ARN, value []byte) error {
	var r functionRecord
	err := json.Unmarshal(value, &r)
	if err != nil {
		return err
	}
	f := newFunction(name)
	f.Incarnation, f.Tags, f.Reserved, f.last, f.changed = r.Incarnation, r.Tags, r.Reserved, r.Last, r.Changed
	if f.latest, err = s.decode(name, &r.Latest, 0); err != nil {
		return err
	}
	f.latest.build = s.newBuild()
	s.use(f, f.latest, +1)
	if r.Next != nil {
		if f.next, err = s.decode(name, r.Next, 0); err != nil {
			return err
		}
		f.next.build = s.newBuild()
		s.use(f, f.next, +1)
	}
	if r.ReadyAt != 0 {
		f.readyAt = time.UnixMilli(r.ReadyAt).UTC()
	}
	if r.Policies != nil {
		f.policies = r.Policies
	}
	f.eventInvokes, f.urls = r.EventInvokes, r.URLs
	s.add(f)
	return nil
}

func (s *State) decode(name arn.ARN, r *versionRecord, number uint64) (*Version, error) {
	v := &Version{
		Number: number, Config: r.Config, Revision: r.Revision, readyRevision: r.ReadyRevision,
		Modified: time.UnixMilli(r.Modified).UTC(), Pending: r.Pending, Token: r.Token,
		Code: Code{Upload: r.Code.Upload, Size: r.Code.Size, Unzipped: r.Code.Unzipped, URL: r.Code.URL},
	}
	if r.Config == nil {
		return nil, errors.New("a version without a configuration")
	}
	if s.sealer != nil && len(r.Sealed) > 0 {
		text, err := s.sealer.Open(r.Sealed, environmentPlace(name, number))
		if err == nil {
			err = json.Unmarshal(text, &v.Config.Environment)
		}
		if err != nil {
			return nil, err
		}
	}
	if s.sealer != nil && len(r.Code.Sealed) > 0 {
		url, err := s.sealer.Open(r.Code.Sealed, codePlace(name, number))
		if err != nil {
			return nil, err
		}
		v.Code.URL = string(url)
	}
	if len(r.Code.SHA256) > 0 && copy(v.Code.SHA256[:], r.Code.SHA256) != len(v.Code.SHA256) {
		return nil, errors.New("a digest that is too short")
	}
	return v, nil
}

// environmentPlace is the encryption context of an environment.
func environmentPlace(name arn.ARN, number uint64) []byte {
	return fmt.Appendf(nil, "environment of %s version %d", name, number)
}

func (s *State) record(f *Function, v *Version) versionRecord {
	r := versionRecord{
		Config: v.Config, Revision: v.Revision, ReadyRevision: v.readyRevision, Modified: v.Modified.UnixMilli(), Pending: v.Pending, Token: v.Token,
		Code: codeRecord{Upload: v.Code.Upload, Size: v.Code.Size, Unzipped: v.Code.Unzipped, URL: v.Code.URL},
	}
	if v.Code.Upload != 0 {
		r.Code.SHA256 = v.Code.SHA256[:]
	}
	if s.sealer != nil {
		r.seal(f.ARN, v.Number, s.sealer)
	}
	return r
}

// seal encrypts the environment, and the URL of a remote function if it may have a password;
// it reports whether there was any.
func (r *versionRecord) seal(name arn.ARN, number uint64, with Sealer) (sealed bool) {
	do := func(text, place []byte) []byte {
		out, err := with.Seal(text, place)
		if err != nil {
			panic(err) // cannot fail
		}
		sealed = true
		return out
	}
	if r.Config != nil && len(r.Config.Environment) > 0 {
		text, err := json.Marshal(r.Config.Environment)
		if err != nil {
			panic(err) // a map of strings can always be marshalled
		}
		r.Sealed = do(text, environmentPlace(name, number))
		shown := *r.Config
		shown.Environment = nil
		r.Config = &shown
	}
	if strings.Contains(r.Code.URL, "@") {
		r.Code.Sealed, r.Code.URL = do([]byte(r.Code.URL), codePlace(name, number)), ""
	}
	return sealed
}

// SealRecord is the record of a function or a version with its secrets encrypted; nil: it has
// none in plain text. Errors: ErrRecord.
func SealRecord(key, value []byte, with Sealer) ([]byte, error) {
	bad := fmt.Errorf("%w: key %q", ErrRecord, key)
	if len(key) < 4 || len(value) == 0 || value[0] != version {
		return nil, bad
	}
	name, rest, _ := bytes.Cut(key[4:], []byte{0})
	owner, ok := parseName(string(name))
	if !ok {
		return nil, bad
	}
	if key[3] == functionTag {
		var r functionRecord
		if json.Unmarshal(value[1:], &r) != nil {
			return nil, bad
		}
		sealed := r.Latest.seal(owner, 0, with)
		if r.Next != nil {
			sealed = r.Next.seal(owner, 0, with) || sealed
		}
		if !sealed {
			return nil, nil
		}
		return encode(r), nil
	}
	var r versionRecord
	if len(rest) != 8 || json.Unmarshal(value[1:], &r) != nil {
		return nil, bad
	}
	if !r.seal(owner, binary.BigEndian.Uint64(rest), with) {
		return nil, nil
	}
	return encode(r), nil
}

// codePlace is the encryption context of a remote function's URL.
func codePlace(name arn.ARN, number uint64) []byte {
	return fmt.Appendf(nil, "code of %s version %d", name, number)
}

// Sealer encrypts secrets in records, bound to a place that decryption must name.
type Sealer interface {
	Seal(plaintext, place []byte) ([]byte, error)
	Open(sealed, place []byte) ([]byte, error)
}

// SealWith sets the Sealer of later writes. Without one, encrypted environments are read as
// empty.
func (s *State) SealWith(sealer Sealer) { s.sealer = sealer }

// put writes a function's record.
func (s *State) put(b *mutation.Batch, f *Function) {
	r := functionRecord{
		Incarnation: f.Incarnation, Tags: f.Tags, Reserved: f.Reserved, Latest: s.record(f, f.latest), Last: f.last, Changed: f.changed,
		Policies: f.policies, EventInvokes: f.eventInvokes, URLs: f.urls,
	}
	if f.next != nil {
		next := s.record(f, f.next)
		r.Next = &next
	}
	if !f.readyAt.IsZero() {
		r.ReadyAt = f.readyAt.UnixMilli()
	}
	b.Set(s.key(functionTag, f.ARN), encode(r))
}

func (s *State) putVersion(b *mutation.Batch, f *Function, v *Version) {
	b.Set(s.versionKey(f, v.Number), encode(s.record(f, v)))
}

func (s *State) versionKey(f *Function, number uint64) []byte {
	return binary.BigEndian.AppendUint64(append(s.key(versionTag, f.ARN), 0), number)
}

func (s *State) putAlias(b *mutation.Batch, f *Function, a *Alias) {
	b.Set(s.aliasKey(f, a.Name), encode(a))
}

func (s *State) aliasKey(f *Function, name string) []byte {
	return append(append(s.key(aliasTag, f.ARN), 0), name...)
}

func encode(record any) []byte { return keyspace.EncodeJSON(version, record) }

// within is the key range of a function's records under a tag: [start, end).
func (s *State) within(tag byte, name arn.ARN) (start, end []byte) {
	key := s.key(tag, name)
	return append(bytes.Clone(key), 0), append(key, 1)
}

func (s *State) key(tag byte, name arn.ARN) []byte {
	key := make([]byte, 0, 64+len(name.Resource))
	key = binary.BigEndian.AppendUint16(key, s.shard)
	key = append(key, space, tag)
	return append(key, name.Account+"/"+name.Region+"/"+name.FunctionName()...)
}

func parseName(name string) (arn.ARN, bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || parts[2] == "" {
		return arn.ARN{}, false
	}
	return arn.Function(parts[1], parts[0], parts[2]), true
}
