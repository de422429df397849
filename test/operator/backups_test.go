package operator_test

import (
	"fmt"
	"hash/crc32"
	"net/http"
	"testing"

	"godwit.dev/godwit/internal/config"
)

type offered struct {
	ID, CreatedAt, Version, Process, RootKey string
	Files                                    []struct {
		Name string
		Size int
	}
}

// The files of a snapshot are given in parts, until it is ended; nothing else is.
func TestBackup(t *testing.T) {
	w := startWith(t, func(c *config.Config) { c.Store = config.PebbleStore })
	w.send(w.queue("orders", nil), "hello")
	made := post[offered](w, "backup", "{}")
	if made.ID == "" || made.RootKey == "" || made.Version == "" || made.Process == "" || len(made.Files) == 0 {
		t.Fatalf("%+v", made)
	}
	for _, f := range made.Files {
		link := w.endpoint + prefix + "backup/part?" + query([]string{"id", made.ID, "name", f.Name})
		resp := must(http.Get(link))(t)
		text := w.call(http.MethodGet, "backup/part", query([]string{"id", made.ID, "name", f.Name}), "", http.StatusOK)
		resp.Body.Close()
		equal(t, f.Name, f.Size, len(text))
		equal(t, "the sum of "+f.Name, fmt.Sprintf("%08x", crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli))), resp.Header.Get("X-Godwit-Checksum"))
	}
	name := made.Files[0].Name
	w.refused(http.StatusNotFound, http.MethodGet, "backup/part", query([]string{"id", made.ID, "name", "../godwit-format"}))
	w.refused(http.StatusNotFound, http.MethodGet, "backup/part", query([]string{"id", "other", "name", name}))
	w.refused(http.StatusBadRequest, http.MethodGet, "backup/part", query([]string{"id", made.ID, "name", name, "offset", "99999999"}))
	w.refused(http.StatusBadRequest, http.MethodPost, "backup", `{"path":"/tmp"}`)
	w.refused(http.StatusBadRequest, http.MethodPost, "backup/end", `{}`)
	post[struct{ ID string }](w, "backup/end", `{"id":"`+made.ID+`"}`)
	w.refused(http.StatusNotFound, http.MethodGet, "backup/part", query([]string{"id", made.ID, "name", name}))

	type delivering struct{ Held, Changed bool }
	equal(t, "held", delivering{}, get[delivering](w, "delivering"))
	equal(t, "begun", delivering{}, post[delivering](w, "delivering/begin", "{}"))
	w.refused(http.StatusBadRequest, http.MethodPost, "delivering/begin", `{"x":1}`)
	w.refused(http.StatusBadRequest, http.MethodGet, "delivering", "x=1")

	start(t).refused(http.StatusConflict, http.MethodPost, "backup", "{}") // it has no disk
}
