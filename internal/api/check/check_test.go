package check_test

import (
	"fmt"
	"slices"
	"testing"

	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/fault"
)

// TestPage: pages are of the length asked for within 1 to 1,000, and continue behind what
// they have shown, also where that was deleted meanwhile.
func TestPage(t *testing.T) {
	all := make([]string, 2500)
	for i := range all {
		all[i] = fmt.Sprintf("n%04d", i)
	}
	key := func(s *string) string { return *s }
	for _, c := range []struct {
		most *int
		want int
	}{{nil, 100}, {new(7), 7}, {new(0), 1}, {new(-1), 1}, {new(1000), 1000}, {new(5000), 1000}} {
		var got []string
		var marker *string
		for {
			page, truncated, next, err := check.Page("names", all, key, marker, c.most)
			if err != nil {
				t.Fatal(err)
			}
			if truncated && len(page) != c.want {
				t.Fatalf("a page of %d names, want %d", len(page), c.want)
			}
			got = append(got, page...)
			if !truncated {
				break
			}
			marker = &next
			if len(got) > len(all) {
				t.Fatal("the list has no end")
			}
		}
		if !slices.Equal(got, all) {
			t.Errorf("pages of %d names show %d", c.want, len(got))
		}
	}
	_, _, next, err := check.Page("names", all, key, nil, new(3))
	if err != nil {
		t.Fatal(err)
	}
	without := slices.Delete(slices.Clone(all), 2, 3)
	if page, _, _, err := check.Page("names", without, key, &next, new(1)); err != nil || page[0] != "n0003" {
		t.Errorf("goes on at %v, %v", page, err)
	}
	if page, truncated, _, err := check.Page("names", nil, key, nil, nil); page == nil || len(page) > 0 || truncated || err != nil {
		t.Errorf("of nothing: %v, %v, %v", page, truncated, err)
	}
	if _, _, _, err := check.Page("others", all, key, &next, nil); fault.KindOf(err) != fault.ValidationFailed {
		t.Errorf("the marker of another list: %v", err)
	}
}
