package platform

import (
	"slices"
	"strconv"
	"strings"
)

// The message attributes for push platforms. Sources: "Using the time to live message
// attribute" and "Sending custom, platform-specific payloads" in the SNS developer guide; the
// header fields of requests in Apple's documentation of APNs.
var (
	pushTypes  = []string{"alert", "background", "complication", "controls", "fileprovider", "liveactivity", "location", "mdm", "pushtotalk", "voip", "widgets"}
	priorities = []string{"1", "5", "10"}
)

// maxCollapseID is the maximum length of one, in bytes.
const maxCollapseID = 64

// ValidAttribute reports whether a message's attribute has a valid value, if it is one for push
// platforms. Others are ignored.
func ValidAttribute(name, value string) bool {
	rest, ok := strings.CutPrefix(name, AttributePrefix)
	of, wish, _ := strings.Cut(rest, ".")
	switch {
	case !ok:
		return true
	case wish == "TTL":
		seconds, err := strconv.ParseInt(value, 10, 64)
		return err == nil && seconds >= 0
	case !apple(of):
		return true
	case wish == "PUSH_TYPE":
		return slices.Contains(pushTypes, value)
	case wish == "PRIORITY":
		return slices.Contains(priorities, value)
	case wish == "COLLAPSE_ID":
		return len(value) <= maxCollapseID && printable(value)
	case wish == "TOPIC":
		return printable(value)
	}
	return true
}

// printable reports that a text can be the value of a header.
func printable(value string) bool {
	return value != "" && !strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' })
}
