package restjson

import (
	"net/url"
	"strings"
)

// Routes finds what a method and a path ask for.
type Routes[T any] struct {
	byShape map[routeShape][]route[T]
}

// routeShape is what is known of a route without its places.
type routeShape struct {
	method string
	depth  int
	first  string
}

type route[T any] struct {
	segments []string // a place begins with {
	target   T
}

// Add makes a route, whose path holds places as {Name}. The first segment of a
// path must not be one.
func (r *Routes[T]) Add(method, path string, target T) {
	segments := split(path)
	if r.byShape == nil {
		r.byShape = map[routeShape][]route[T]{}
	}
	key := routeShape{method, len(segments), segments[0]}
	r.byShape[key] = append(r.byShape[key], route[T]{segments, target})
}

// Find gives what a request's method and escaped path ask for, and the members
// that stand in the path.
func (r *Routes[T]) Find(method, escaped string) (target T, places map[string]string, ok bool) {
	segments := split(escaped)
	for _, candidate := range r.byShape[routeShape{method, len(segments), segments[0]}] {
		if places, ok := match(candidate.segments, segments); ok {
			return candidate.target, places, true
		}
	}
	return target, nil, false
}

// split cuts a path into its segments. A slash at its end means nothing.
func split(path string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), "/")
}

func match(pattern, segments []string) (map[string]string, bool) {
	places := map[string]string{}
	for i, want := range pattern {
		if name, ok := strings.CutPrefix(want, "{"); ok {
			value, err := url.PathUnescape(segments[i])
			if err != nil || value == "" {
				return nil, false
			}
			places[strings.TrimSuffix(name, "}")] = value
		} else if want != segments[i] {
			return nil, false
		}
	}
	return places, true
}
