package rpccbor_test

import (
	"encoding/hex"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/wire/rpccbor"
)

type inner struct {
	Name  string
	Value *float64
}

type whole struct {
	Text    string
	Maybe   *string
	Count   *int
	Big     int64
	Real    float64
	Flag    *bool
	Blob    []byte
	At      *api.Time
	Times   []api.Time
	Reals   []float64
	Names   []string
	Items   []inner
	One     *inner
	Texts   map[string]string
	Numbers map[string]float64
}

func full() whole {
	count, flag, maybe, real, at := -70000, true, "", 0.1, api.Time(1779805260123)
	return whole{
		Text: "a é " + strings.Repeat("x", 300), Maybe: &maybe, Count: &count, Big: math.MinInt64, Real: -1.5, Flag: &flag,
		Blob: []byte{0, 255}, At: &at, Times: []api.Time{0, -1500}, Reals: []float64{1, math.MaxFloat64}, Names: []string{},
		Items: []inner{{"n", &real}, {}}, One: &inner{Name: "o"}, Texts: map[string]string{"k": "v"}, Numbers: map[string]float64{"p99": 2},
	}
}

func TestRoundTrip(t *testing.T) {
	for _, want := range []whole{{}, full()} {
		var got whole
		if err := rpccbor.Decode(rpccbor.Append(nil, &want), &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
}

// Another library reads what is written: maps and lists of indefinite length,
// moments under tag 1 over a double.
func TestAppend(t *testing.T) {
	at := api.Time(1500)
	got := rpccbor.Append(nil, &whole{Text: "é", At: &at, Names: []string{}})
	if want := "bf" + "6454657874" + "62c3a9" + "63426967" + "00" + "645265616c" + "fb0000000000000000" +
		"624174" + "c1fb3ff8000000000000" + "654e616d6573" + "9fff" + "ff"; hex.EncodeToString(got) != want {
		t.Errorf("got %x", got)
	}
	value := full()
	if err := cbor.Wellformed(rpccbor.Append(nil, &value)); err != nil {
		t.Error(err)
	}
}

// What clients may write in more than one way.
func TestDecodeForms(t *testing.T) {
	for text, want := range map[string]whole{
		"":                                 {},
		"a0":                               {},
		"bfff":                             {},
		"a1644e6f6e6500":                   {},                           // unknown
		"a16454657874f6":                   {},                           // null
		"a1645265616c03":                   {Real: 3},                    // an integer for a double
		"a1645265616c1b8ac7230489e80000":   {Real: 1e19},                 // and one that no int64 holds
		"a1645265616c3b8ac7230489e7ffff":   {Real: -1e19},                //
		"a1645265616cf93c00":               {Real: 1},                    // of 16 bits
		"a1645265616cfa40200000":           {Real: 2.5},                  // of 32 bits
		"a1634269671b7fffffffffffffff":     {Big: math.MaxInt64},         //
		"a163426967fb4024000000000000":     {Big: 10},                    // a double that is whole
		"a1654e616d65738261617f61626163ff": {Names: []string{"a", "bc"}}, // a text in pieces
		"a16554696d657381c101":             {Times: []api.Time{1000}},    // whole seconds
		"a1654974656d7381f6":               {Items: []inner{{}}},         // null for a map that has nothing
	} {
		body, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		var got whole
		if err := rpccbor.Decode(body, &got); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}

func TestRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"ff":                               "The request body is not valid CBOR.",
		"a0a0":                             "The request body is not valid CBOR.",
		"a10000":                           "The request body is not valid CBOR.", // keys are texts
		"a26161016161":                     "The request body is not valid CBOR.",
		"a2616101616101":                   "The request body is not valid CBOR.", // twice the same
		"80":                               "Expected a map, found a list.",
		"a1645465787400":                   "Expected a text string, found a number.",
		"a165436f756e746130":               "Expected an integer, found a text string.",
		"a165436f756e741b0000000100000000": "Expected an integer, found a number.",
		"a1634269671b8000000000000000":     "Expected an integer, found a number.",
		"a165436f756e743b8000000000000000": "Expected an integer, found a number.",
		"a162417400":                       "Expected a timestamp, found a number.",
		"a164466c616700":                   "Expected a boolean, found a number.",
		"a1654e616d6573a0":                 "Expected a list, found a map.",
		"a1654974656d738100":               "Expected a map, found a number.",
		"a1655265616c7381f6":               "Expected a number, found null.",
		"a1654e616d657381f6":               "Expected a text string, found null.",
		"a1" + "65" + "4974656d73" + strings.Repeat("81", 40) + "00": "The request body is not valid CBOR.",
	} {
		body, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := rpccbor.Decode(body, new(whole)); err == nil || err.Error() != want || fault.KindOf(err) != fault.MalformedInput {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	value := full()
	f.Add(rpccbor.Append(nil, &value))
	f.Add([]byte{0xa1, 0x62, 'A', 't', 0xc1, 0xfb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0xc1, 0xfb, 0x7f, 0xef, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0x9f, 0x9f, 0x9f})
	f.Fuzz(func(t *testing.T, body []byte) {
		var in whole
		if err := rpccbor.Decode(body, &in); err != nil {
			if fault.KindOf(err) != fault.MalformedInput {
				t.Fatal(err)
			}
			return
		}
		var again whole
		if err := rpccbor.Decode(rpccbor.Append(nil, &in), &again); err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		if d := cmp.Diff(normal(in), normal(again), cmp.Comparer(func(a, b float64) bool {
			return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
		})); d != "" {
			t.Fatal(d)
		}
	})
}

// normal drops differences that do not matter on the wire: an empty text is
// absent, and blobs in their own memory.
func normal(w whole) whole {
	if len(w.Blob) == 0 {
		w.Blob = nil
	}
	v := reflect.ValueOf(&w).Elem()
	for _, f := range v.Fields() {
		if (f.Kind() == reflect.Slice || f.Kind() == reflect.Map) && f.Len() == 0 {
			f.SetZero()
		}
	}
	return w
}
