package messaging

import (
	"context"
	"errors"
	"net/http"

	"godwit.dev/godwit/internal/api/operator"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/api/operator/sources"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/server/deploying/step"
)

// The operations of the operator API that make sources, and delete them.
var (
	putSource     = rest.Operation{Method: http.MethodPost, Path: operator.Prefix + "sources", Name: "PutSource"}
	dropSource    = rest.Operation{Method: http.MethodPost, Path: operator.Prefix + "source/delete", Name: "DeleteSource"}
	sourceMembers = map[string]string{"IdHeader": "IDHeader", "GroupId": "GroupID", "DeduplicationId": "DeduplicationID"}
)

// operate carries out an operation of the operator API.
func operate(ctx context.Context, w *step.Work, op *rest.Operation, resource string, do func(s *sources.Sources, call *rest.Call) error) error {
	s := w.Options.Sources
	if s == nil || s.Account != w.Account {
		return &step.Error{Text: "Sources are of the server's own account.", Code: "InvalidRequest"}
	}
	call, err := w.Options.Operating(ctx, w.Actor, op, resource)
	if err == nil {
		err = do(s, call)
		if call.Ended != nil {
			call.Ended(err)
		}
	}
	if err == nil || fault.KindOf(err) == fault.Unavailable {
		return err
	}
	refused := rest.RefusalOf(err)
	codes := map[int]string{http.StatusNotFound: "NotFound", http.StatusForbidden: "AccessDenied", http.StatusInternalServerError: "GeneralServiceException"}
	code, ok := codes[refused.Status]
	if !ok {
		code = "InvalidRequest"
	}
	return &step.Error{Text: refused.Text, Code: code}
}

func createSource(ctx context.Context, w *step.Work) (step.Made, error) {
	if s := w.Options.Sources; s != nil && s.Account == w.Account {
		found, err := s.Get(ctx, nil, &sources.OneSource{Name: w.Target.Physical})
		if err == nil && (!w.Again || found.CreatedAt == nil || found.CreatedAt.UnixMilli() < w.Began) {
			return step.Made{}, w.Taken(w.Target.Physical)
		}
	}
	return writeSource(ctx, w)
}

// writeSource makes a source, or has it as properties say.
func writeSource(ctx context.Context, w *step.Work) (is step.Made, err error) {
	properties := w.Target.Properties
	in := &sources.PutSource{}
	given := map[string]any{
		"Target": properties["Target"], "Verification": renamed(properties["Verification"], sourceMembers), "Mapping": renamed(properties["Mapping"], sourceMembers),
		"Limits": properties["Limits"], "Paused": properties["Paused"], "Secrets": properties["Secrets"],
	}
	if w.Now != nil {
		is = step.Made{Physical: w.Target.Physical, Attributes: w.Target.Attributes}
	}
	if err := step.Fill(given, in); err != nil {
		return is, err
	}
	in.Name = w.Target.Physical
	err = operate(ctx, w, &putSource, in.Target, func(s *sources.Sources, call *rest.Call) error {
		out, err := s.Put(ctx, call, in)
		if err == nil {
			is = step.Made{Physical: in.Name, Attributes: map[string]any{"Owner": out.Owner, "Path": out.Path}}
		}
		return err
	})
	return is, err
}

func deleteSource(ctx context.Context, w *step.Work) error {
	err := operate(ctx, w, &dropSource, "", func(s *sources.Sources, call *rest.Call) error {
		_, err := s.Delete(ctx, call, &sources.ChangeSource{Name: w.Target.Physical})
		return err
	})
	if refused, ok := errors.AsType[*step.Error](err); ok && refused.Code == "NotFound" {
		return nil
	}
	return err
}
