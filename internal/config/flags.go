package config

import (
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Flag is the value of a setting.
type Flag struct {
	Name    string // without the dashes
	Value   string
	Default string // empty: none, or it differs between the modes
	Help    string
}

// Flags are the settings with flags in every mode, in the order of Config, and those of the
// mode. They have no secrets: user names, passwords and parameters in URLs are masked.
func (c *Config) Flags() []Flag {
	all := flagsOf(reflect.ValueOf(c).Elem())
	all = append(all, Flag{Name: "clock", Value: string(c.Clock)}, Flag{Name: "store", Value: string(c.Store)},
		Flag{Name: "enforce", Value: strconv.FormatBool(c.Enforce || c.Production)}, Flag{Name: "root-key", Value: c.RootKey},
		Flag{Name: "root-access-key", Value: c.RootAccessKey}, Flag{Name: "allow-plain-http", Value: strconv.FormatBool(c.AllowPlainHTTP)})
	return all
}

func flagsOf(v reflect.Value) (all []Flag) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Tag.Get("kong") == "-" || !f.IsExported() {
			continue
		}
		if _, embedded := f.Tag.Lookup("embed"); embedded {
			all = append(all, flagsOf(v.Field(i))...)
			continue
		}
		name := f.Tag.Get("name")
		if name == "" {
			name = dashed(f.Name)
		}
		flag := Flag{Name: name, Value: shown(v.Field(i)), Default: f.Tag.Get("default"), Help: f.Tag.Get("help")}
		if strings.Contains(flag.Default, "${") {
			flag.Default = ""
		}
		flag.Help = strings.NewReplacer(" (${default})", "", "${enum}", strings.ReplaceAll(f.Tag.Get("enum"), ",", ", ")).Replace(flag.Help)
		all = append(all, flag)
	}
	return all
}

// dashed is the name of a flag without a name in its field's tag.
func dashed(field string) string {
	var b strings.Builder
	before := rune(0)
	for _, r := range field {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
		before = r
	}
	return b.String()
}

func shown(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case time.Duration:
		return value.String()
	case []string:
		masked := make([]string, len(value))
		for i, one := range value {
			masked[i] = maskedAddress(one)
		}
		return strings.Join(masked, ",")
	default:
		return maskedAddress(fmt.Sprint(value))
	}
}

// maskedAddress is a value without the secrets that a URL may have.
func maskedAddress(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return "***"
	}
	if u.User != nil {
		u.User = url.User("***")
	}
	if u.RawQuery != "" {
		u.RawQuery = "***"
	}
	return u.String()
}
