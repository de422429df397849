package restjson

import (
	"net/url"
	"slices"
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
	segments []string  // a place begins with {
	query    [2]string // a parameter that the query must have, with its value; empty: none
	target   T
}

// Add makes a route, whose path holds places as {Name}, and may end with ?name=value: what is asked for with that
// parameter. The first segment of a path must not be a place.
func (r *Routes[T]) Add(method, path string, target T) {
	path, query, asked := strings.Cut(path, "?")
	segments := split(path)
	if r.byShape == nil {
		r.byShape = map[routeShape][]route[T]{}
	}
	key := routeShape{method, len(segments), segments[0]}
	if !asked {
		r.byShape[key] = append(r.byShape[key], route[T]{segments: segments, target: target})
		return
	}
	name, value, _ := strings.Cut(query, "=")
	r.byShape[key] = slices.Insert(r.byShape[key], 0, route[T]{segments: segments, query: [2]string{name, value}, target: target})
}

// Find gives what a request's method, escaped path and query ask for, and the members
// that stand in the path.
func (r *Routes[T]) Find(method, escaped, query string) (target T, places map[string]string, ok bool) {
	segments := split(escaped)
	for _, candidate := range r.byShape[routeShape{method, len(segments), segments[0]}] {
		if name := candidate.query[0]; name != "" && !asks(query, name, candidate.query[1]) {
			continue
		}
		if places, ok := match(candidate.segments, segments); ok {
			return candidate.target, places, true
		}
	}
	return target, nil, false
}

// asks reports whether a query has a parameter with a value.
func asks(query, name, value string) bool {
	if !strings.Contains(query, name) {
		return false
	}
	all, err := url.ParseQuery(query)
	return err == nil && all.Get(name) == value
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
