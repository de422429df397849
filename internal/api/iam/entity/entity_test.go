package entity_test

import (
	"testing"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/iam/entity"
	"godwit.dev/godwit/internal/api/iam/entity/entitytest"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
)

const account = "111122223333"

// TestStore makes, finds, lists, tags and changes entities. They are made at a whole second.
func TestStore(t *testing.T) {
	s := entity.Store{Engine: entitytest.New(account)}
	call := &api.Call{Account: account}
	for i, path := range []string{"/a/", "/b/", "/"} {
		name := string(rune('x' + i))
		made, err := s.Create(account, &iam.Entity{Kind: iam.Group, Path: path, Name: name, ID: "AGPA" + name})
		if err != nil || made.Created != time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) || made.ARN() != "arn:aws:iam::111122223333:group"+path+name {
			t.Errorf("%+v, %v", made, err)
		}
	}
	if _, err := s.Create(account, &iam.Entity{Kind: iam.Group, Path: "/", Name: "X", ID: "AGPAX"}); fault.KindOf(err) != fault.EntityAlreadyExists {
		t.Errorf("a name that differs in case: %v", err)
	}
	if e, err := s.Find(account, iam.Group, "y"); err != nil || e.Path != "/b/" {
		t.Errorf("%+v, %v", e, err)
	}
	for prefix, want := range map[string]int{"": 3, "/": 3, "/a/": 1, "/none/": 0} {
		all, err := s.List(call, iam.Group, &prefix)
		if err != nil || len(all) != want {
			t.Errorf("%d under %q, %v", len(all), prefix, err)
		}
	}
	if _, err := s.Change(account, func(a *iam.Account, _ time.Time) error { return a.Delete(iam.Group, "y") }); err != nil {
		t.Error(err)
	}
	if _, err := s.Find(account, iam.Group, "y"); fault.KindOf(err) != fault.NoSuchEntity {
		t.Errorf("deleted: %v", err)
	}
	if entity.PathOf(nil) != "/" || entity.PathOf(new("/p/")) != "/p/" {
		t.Error("paths")
	}
}

// TestTags: tags are read, kept, listed by key in pages, and removed; reserved keys are refused.
func TestTags(t *testing.T) {
	s := entity.Store{Engine: entitytest.New(account)}
	call := &api.Call{Account: account}
	if _, err := s.Create(account, &iam.Entity{Kind: iam.User, Path: "/", Name: "u", ID: "AIDAU"}); err != nil {
		t.Fatal(err)
	}
	tag := func(key, value string) entity.Tag { return entity.Tag{Key: &key, Value: &value} }
	if _, err := s.Tag(call, iam.User, "u", []entity.Tag{tag("b", "1"), tag("a", "2"), tag("c", "")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tag(call, iam.User, "u", []entity.Tag{tag("d", ""), tag("aWs:x", "")}); fault.KindOf(err) != fault.InvalidInput {
		t.Errorf("a reserved key: %v", err)
	}
	if _, err := s.Untag(call, iam.User, "u", []string{"c", "none"}); err != nil {
		t.Error(err)
	}
	var keys string
	var marker *string
	for range 5 {
		out, err := s.Tags(call, iam.User, "u", marker, new(1))
		if err != nil {
			t.Fatal(err)
		}
		for _, tag := range out.Tags {
			keys += *tag.Key + "=" + *tag.Value + " "
		}
		if !out.IsTruncated {
			break
		}
		marker = &out.Marker
	}
	if keys != "a=2 b=1 " {
		t.Errorf("tags %s", keys)
	}
	if _, err := s.Tags(call, iam.User, "none", nil, nil); fault.KindOf(err) != fault.NoSuchEntity {
		t.Errorf("of nobody: %v", err)
	}
}
