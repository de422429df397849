package server

import (
	"maps"
	"net/http"

	"godwit.dev/godwit/internal/console"
	"godwit.dev/godwit/internal/console/session"
)

// consolePages are the parts of the console that anybody may ask for.
func consolePages() (map[string]http.Handler, error) {
	handlers, err := console.Handlers()
	if err != nil {
		return nil, err
	}
	maps.Copy(handlers, session.Unneeded())
	return handlers, nil
}
