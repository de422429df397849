package rpccbor_test

import (
	"runtime"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/wire/rpccbor"
)

// What a body takes in memory is in proportion to its size.
func TestBodiesThatGrow(t *testing.T) {
	const size = 2 << 20
	for name, body := range map[string]string{
		"empty lists":   "\xa1\x61x\x9f" + strings.Repeat("\x99\xff\xff"+strings.Repeat("\x80", 0xffff), size>>16) + "\xff",
		"empty maps":    "\xa1\x61x\x9f" + strings.Repeat("\x99\xff\xff"+strings.Repeat("\xa0", 0xffff), size>>16) + "\xff",
		"endless lists": "\xa1\x61x\x9f" + strings.Repeat("\x9f\xff", size/2) + "\xff",
		"empty texts":   "\xa1\x61x\x9f" + strings.Repeat("\x99\xff\xff"+strings.Repeat("\x60", 0xffff), size>>16) + "\xff",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := rpccbor.Decode([]byte(body), new(whole))
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 4*size || fault.KindOf(err) != fault.MalformedInput {
			t.Errorf("%s, of %d bytes, took %d: %v", name, len(body), took, err)
		}
	}
	// What texts hold is not counted, in one piece or in several.
	long := strings.Repeat("\x80", size/2)
	want := whole{Text: strings.ToValidUTF8(strings.Repeat("é", size/4), ""), Blob: []byte(long)}
	var got whole
	if err := rpccbor.Decode(rpccbor.Append(nil, &want), &got); err != nil || got.Text != want.Text || string(got.Blob) != long {
		t.Errorf("a long text and blob: %v", err)
	}
}
