package sdk_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api/constraints"
)

// violation is a value that breaks one constraint of its shape, and what AWS's validation
// says of it behind the value.
type violation struct {
	value any // a text or a number
	says  string
}

// violations are for what a shape says of texts and numbers: its bounds and its values.
func violations(s *constraints.Shape) (all []violation) {
	text := s.Pattern != "" || len(s.Enum) > 0 || s.Of == "" && len(s.Members) == 0
	if !text {
		return nil
	}
	if s.Max != nil && *s.Max <= 140_000 {
		all = append(all, violation{strings.Repeat("a", *s.Max+1), fmt.Sprintf("Member must have length less than or equal to %d", *s.Max)})
	}
	if s.Min != nil && *s.Min > 1 && *s.Min < 100 {
		all = append(all, violation{strings.Repeat("a", *s.Min-1), fmt.Sprintf("Member must have length greater than or equal to %d", *s.Min)})
	}
	if len(s.Enum) > 0 {
		all = append(all, violation{"no-such-value", "Member must satisfy enum value set: [" + strings.Join(s.Enum, ", ") + "]"})
	}
	return all
}

// numbers are the members of those services that are numbers; their bounds are of values.
var numbers = regexp.MustCompile(`^(MaxItems|DurationSeconds|MaxSessionDuration|Limit|NumberOfBytes|PendingWindowInDays|RotationPeriodInDays|MaxPasswordAge|MinimumPasswordLength|PasswordReusePrevention|CredentialAgeDays)$`)

// Every member of every operation of IAM, STS and KMS that the models bound is refused where
// it is out of its bounds, in AWS's words: so that no handler reads one that nobody checks.
func TestModelsAreHeld(t *testing.T) {
	endpoint := start(t)
	for _, service := range []struct {
		name, version, target string
		shown                 bool // the value is in the text
	}{{"iam", "2010-05-08", "", false}, {"sts", "2011-06-15", "", true}, {"kms", "", "TrentService", true}} {
		table, tried := constraints.Of(service.name), 0
		for _, operation := range slices.Sorted(maps.Keys(table.Operations)) {
			members := table.Operations[operation]
			send := func(member string, value any) (int, string) {
				var r *http.Request
				if service.target == "" {
					r = newForm(t, endpoint, service.version, operation, member, fmt.Sprint(value))
				} else {
					r = newJSON(t, endpoint, "", string(must(json.Marshal(map[string]any{member: value}))(t)))
					r.Header.Set("Content-Type", "application/x-amz-json-1.1")
					r.Header.Set("X-Amz-Target", service.target+"."+operation)
				}
				answer := do(t, r)
				return answer.Status, answer.Body
			}
			if _, body := send("Nothing", "x"); strings.Contains(body, "not built") || strings.Contains(body, "has no action") {
				continue
			}
			for member, shape := range members {
				s := table.Shapes[strings.TrimSuffix(shape, "!")]
				at := strings.ToLower(member[:1]) + member[1:]
				expect := func(value any, says string, hidden bool) {
					t.Helper()
					tried++
					shown := "Value at '" + at + "'"
					if service.shown && !hidden {
						shown = fmt.Sprintf("Value '%v' at '%s'", value, at)
					}
					status, body := send(member, value)
					want := shown + " failed to satisfy constraint: " + says
					if !contains(body, want) && !contains(body, firstBytes(shown)) || status != http.StatusBadRequest {
						t.Errorf("%s %s=%.40v: status %d, %.300s\nwant %.200s", operation, member, value, status, body, want)
					}
				}
				if strings.HasSuffix(shape, "!") && member != "Nothing" {
					_, body := send("Nothing", "x")
					null := "Value null at '" + at + "' failed to satisfy constraint: Member must not be null"
					empty := "Value '' at '" + at + "' failed to satisfy constraint: Member must have length greater than or equal to"
					if !contains(body, null) && !contains(body, empty) {
						t.Errorf("%s without %s: %.300s", operation, member, body)
					}
				}
				if s == nil || s.Hidden && service.target != "" { // blobs have tests of their own
					continue
				}
				if numbers.MatchString(member) {
					if s.Max != nil {
						expect(*s.Max+1, fmt.Sprintf("Member must have value less than or equal to %d", *s.Max), false)
					}
					if s.Min != nil {
						expect(*s.Min-1, fmt.Sprintf("Member must have value greater than or equal to %d", *s.Min), false)
					}
					continue
				}
				for _, v := range violations(s) {
					expect(v.value, v.says, s.Hidden)
				}
			}
		}
		if tried < 10 {
			t.Errorf("%s: %d values tried", service.name, tried)
		}
		t.Logf("%s: %d values", service.name, tried)
	}
}

// contains looks for a text in an answer of XML or JSON.
func contains(body, text string) bool {
	escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&apos;", `"`, "&quot;").Replace(text)
	inJSON, _ := json.Marshal(text)
	return strings.Contains(body, text) || strings.Contains(body, escaped) || strings.Contains(body, strings.Trim(string(inJSON), `"`)) ||
		strings.Contains(body, url.PathEscape(text))
}

// firstBytes is how a long value begins in a text, which shows no more of it.
func firstBytes(shown string) string {
	if len(shown) > 2_000 {
		return shown[:2_000]
	}
	return shown
}
