package function

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/function/bundle"
	"godwit.dev/godwit/internal/sorted"
)

// Config is a version's configuration, without its code. It is immutable.
type Config struct {
	Package      string            `json:"package"` // "Zip" or "Image"
	Runtime      string            `json:"runtime,omitempty"`
	Handler      string            `json:"handler,omitempty"`
	Role         string            `json:"role"`
	Description  string            `json:"description,omitempty"`
	TimeoutS     int               `json:"timeout"` // seconds
	MemoryMB     int               `json:"memory"`
	EphemeralMB  int               `json:"ephemeral"`
	Environment  map[string]string `json:"environment,omitzero"` // nil: never set; may be empty
	DeadLetter   arn.ARN           `json:"deadLetter,omitzero"`
	Tracing      string            `json:"tracing"`
	Architecture string            `json:"architecture"`
	KMSKey       string            `json:"kmsKey,omitempty"`
	// Cipher is the environment encrypted under KMSKey, if that is not empty; then
	// Environment is nil.
	Cipher  []byte  `json:"cipher,omitempty"`
	Logging Logging `json:"logging"`
	Layers  []Layer `json:"layers,omitempty"` // in the order in which they are laid over one another
}

// Layer is a version of a layer that a function has. It is as it was when the function got it: nothing of
// a layer's version changes, and its content stays as long as a function has it.
type Layer struct {
	ARN      arn.ARN `json:"arn"`    // with the version's number
	Upload   uint64  `json:"upload"` // in the layer's shard
	SHA256   []byte  `json:"sha256"` // of the zip
	Size     int64   `json:"size"`   // of the zip, in bytes
	Unzipped int64   `json:"unzipped"`
}

// Logging configures a function's log.
type Logging struct {
	Format           string `json:"format"` // TextLogs or JSONLogs
	ApplicationLevel string `json:"applicationLevel,omitempty"`
	SystemLevel      string `json:"systemLevel,omitempty"`
	Group            string `json:"group"`
}

// The formats of a function's log.
const (
	TextLogs = "Text"
	JSONLogs = "JSON" // with levels, and a minimum level
)

// equal compares two configurations, but for their descriptions.
func (c *Config) equal(other *Config) bool {
	a, b := *c, *other
	a.Environment, b.Environment, a.Description, b.Description = nil, nil, "", ""
	return maps.Equal(c.Environment, other.Environment) && sameScalars(a, b) &&
		slices.EqualFunc(c.Layers, other.Layers, func(a, b Layer) bool { return a.ARN == b.ARN })
}

// sameScalars compares all of two configurations but their environments.
func sameScalars(a, b Config) bool {
	return a.Package == b.Package && a.Runtime == b.Runtime && a.Handler == b.Handler && a.Role == b.Role &&
		a.TimeoutS == b.TimeoutS && a.MemoryMB == b.MemoryMB && a.EphemeralMB == b.EphemeralMB && a.DeadLetter == b.DeadLetter &&
		a.Tracing == b.Tracing && a.Architecture == b.Architecture && a.KMSKey == b.KMSKey && bytes.Equal(a.Cipher, b.Cipher) && a.Logging == b.Logging
}

// Version is a function's code and configuration. Callers read it; only commands change it.
type Version struct {
	Number   uint64 // 0: $LATEST
	Config   *Config
	Code     Code
	Revision string
	Modified time.Time
	// Pending says that it is being created, and cannot be invoked yet.
	Pending bool
	// Token is the one that it was published under; empty: none.
	Token string

	readyRevision string // its revision after completion
	// build identifies code and configuration, within this process. Unlike the revision, it
	// does not change with other members.
	build string
}

// Name is the version's name: Latest or a number.
func (v *Version) Name() string {
	if v.Number == 0 {
		return Latest
	}
	return strconv.FormatUint(v.Number, 10)
}

// Function is a function with its versions and aliases. Callers read it; only
// commands change it.
type Function struct {
	ARN         arn.ARN
	Incarnation uint64
	Tags        map[string]string
	Reserved    *int // concurrent executions; nil: none are reserved

	latest   *Version // the one that is invoked
	next     *Version // $LATEST after the update in progress; nil: there is none
	versions sorted.List[*Version]
	aliases  sorted.List[*Alias]
	last     uint64                  // the highest version number so far, also of deleted functions of this name
	changed  bool                    // $LATEST was updated since the last published version
	readyAt  time.Time               // zero: no change in progress
	policies map[string][]Permission // by qualifier; empty: of the function
	// eventInvokes are by qualifier, Latest for the function.
	eventInvokes map[string]EventInvoke
	urls         map[string]URL // by alias; empty: of the function
	uploads      map[uint64]int // the number of versions with an upload
}

func newFunction(name arn.ARN) *Function {
	return &Function{
		ARN:      name,
		versions: sorted.List[*Version]{Compare: func(a, b *Version) int { return cmp.Compare(a.Number, b.Number) }},
		aliases:  sorted.List[*Alias]{Compare: compareAliases},
		policies: map[string][]Permission{},
		uploads:  map[uint64]int{},
	}
}

// Name is the function's name.
func (f *Function) Name() string { return f.ARN.FunctionName() }

// Latest is $LATEST, with the update in progress, if there is one.
func (f *Function) Latest() *Version {
	if f.next != nil {
		return f.next
	}
	return f.latest
}

// Updating reports whether an update of $LATEST is in progress.
func (f *Function) Updating() bool { return f.next != nil }

// Version finds a version by its name.
func (f *Function) Version(name string) (*Version, bool) {
	if name == Latest {
		return f.Latest(), true
	}
	n, err := strconv.ParseUint(name, 10, 64)
	if err != nil || n == 0 || name[0] == '0' || name[0] == '+' {
		return nil, false
	}
	return f.numbered(n)
}

// numbered reports whether a qualifier can only be a version's number.
func numbered(qualifier string) bool {
	return strings.Trim(qualifier, "0123456789") == ""
}

func (f *Function) numbered(n uint64) (*Version, bool) {
	list := f.versions.From(func(v *Version) bool { return v.Number < n })
	if len(list) == 0 || list[0].Number != n {
		return nil, false
	}
	return list[0], true
}

// all returns all versions with code: $LATEST, its update in progress, and the numbered ones.
func (f *Function) all() []*Version {
	all := append([]*Version{f.latest}, f.versions.Items...)
	if f.next != nil {
		all = append(all, f.next)
	}
	return all
}

// use adds n to the counts of a version's upload and layers.
func (s *State) use(f *Function, v *Version, n int) {
	s.countLayers(v, n)
	c := v.Code
	if c.Upload == 0 {
		return
	}
	if f.uploads[c.Upload] += n; f.uploads[c.Upload] <= 0 {
		delete(f.uploads, c.Upload)
	}
}

func (s *State) countLayers(v *Version, n int) {
	if s.layerUse == nil {
		return
	}
	for _, l := range v.Config.Layers {
		s.layerUse(l.ARN, n)
	}
}

// CheckUnzipped refuses code and layers that are too large together. Errors: InvalidParameter.
func CheckUnzipped(c *Config, code Code) error {
	if len(c.Layers) == 0 {
		return nil
	}
	var layers int64
	for _, l := range c.Layers {
		layers += l.Unzipped
	}
	if layers > bundle.MaxUnzipped {
		return ErrLayersTooLarge.With(bundle.MaxUnzipped)
	}
	if all := layers + code.Unzipped; all > bundle.MaxUnzipped {
		return ErrCodeAndLayers.With(bundle.MaxUnzipped, all)
	}
	return nil
}

// Code finds the code of any version by its upload.
func (f *Function) Code(upload uint64) (Code, bool) {
	for _, v := range f.all() {
		if v.Code.Upload == upload && upload != 0 {
			return v.Code, true
		}
	}
	return Code{}, false
}

// CodeSize is the code size of all versions. As with AWS, a shared zip counts for each.
func (f *Function) CodeSize() (bytes int64) {
	for _, v := range f.all() {
		bytes += v.Code.Size
	}
	return bytes
}

// checkRevision refuses a revision that is not the current one; empty: any.
func checkRevision(want, have string) error {
	if want != "" && want != have {
		return ErrRevisionOutdated
	}
	return nil
}

// unusedUploads are the uploads of before that no version has any more.
func (f *Function) unusedUploads(before ...Code) (gone []uint64) {
	for _, c := range before {
		if c.Upload != 0 && f.uploads[c.Upload] == 0 && !slices.Contains(gone, c.Upload) {
			gone = append(gone, c.Upload)
		}
	}
	return gone
}
