package checklist

import (
	"fmt"
	"path"
)

// Optional are lists and maps that answers may lack, and why. Clients take an empty list
// as there is none; many fail on one that is missing where AWS always has it.
type Optional struct {
	Reason string
	Paths  []string // patterns of path.Match, such as iam.*.Tags
}

// Optionals reads those of all services.
func Optionals() ([]Optional, error) {
	var all []Optional
	err := read("optional.json", &all)
	return all, err
}

// Missing tells of lists and maps that an answer lacked, a line each, unless they are
// optional; useless are the patterns of optional that none of them needs.
func Missing(absent []string, optional []Optional) (wrong, useless []string) {
	useful := map[string]bool{}
	for _, at := range absent {
		known := false
		for _, o := range optional {
			for _, pattern := range o.Paths {
				if matched, err := path.Match(pattern, at); matched && err == nil {
					known, useful[pattern] = true, true
				}
			}
		}
		if !known {
			wrong = append(wrong, at+" is missing, where AWS has one that is empty")
		}
	}
	for _, o := range optional {
		for _, pattern := range o.Paths {
			if !useful[pattern] {
				useless = append(useless, fmt.Sprintf("no answer lacks %s: take it off what is optional (%s)", pattern, o.Reason))
			}
		}
	}
	return wrong, useless
}
