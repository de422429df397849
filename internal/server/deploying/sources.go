package deploying

import (
	"context"
	"errors"
	"net/http"

	"godwit.dev/godwit/internal/api/operator"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/api/operator/sources"
	"godwit.dev/godwit/internal/fault"
)

// The operations of the operator API that make sources, and delete them.
var (
	putSource     = rest.Operation{Method: http.MethodPost, Path: operator.Prefix + "sources", Name: "PutSource"}
	dropSource    = rest.Operation{Method: http.MethodPost, Path: operator.Prefix + "source/delete", Name: "DeleteSource"}
	sourceMembers = map[string]string{"IdHeader": "IDHeader", "GroupId": "GroupID", "DeduplicationId": "DeduplicationID"}
)

// operate carries out an operation of the operator API.
func (w *work) operate(ctx context.Context, op *rest.Operation, resource string, do func(s *sources.Sources, call *rest.Call) error) error {
	s := w.worker.Sources
	if s == nil || s.Account != w.Account {
		return &handlerError{"Sources are of the server's own account.", "InvalidRequest"}
	}
	call, err := w.worker.Operating(ctx, w.by, op, resource)
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
	return &handlerError{refused.Text, code}
}

func createSource(ctx context.Context, w *work) (made, error) {
	if s := w.worker.Sources; s != nil && s.Account == w.Account {
		found, err := s.Get(ctx, nil, &sources.OneSource{Name: w.Target.Physical})
		if err == nil && (!w.Again || found.CreatedAt == nil || found.CreatedAt.UnixMilli() < w.Began) {
			return made{}, w.taken(w.Target.Physical)
		}
	}
	return writeSource(ctx, w)
}

// writeSource makes a source, or has it as properties say.
func writeSource(ctx context.Context, w *work) (is made, err error) {
	properties := w.Target.Properties
	in := &sources.PutSource{}
	given := map[string]any{
		"Target": properties["Target"], "Verification": renamed(properties["Verification"], sourceMembers), "Mapping": renamed(properties["Mapping"], sourceMembers),
		"Limits": properties["Limits"], "Paused": properties["Paused"], "Secrets": properties["Secrets"],
	}
	if w.Now != nil {
		is = made{w.Target.Physical, w.Target.Attributes}
	}
	if err := fill(given, in); err != nil {
		return is, err
	}
	in.Name = w.Target.Physical
	err = w.operate(ctx, &putSource, in.Target, func(s *sources.Sources, call *rest.Call) error {
		out, err := s.Put(ctx, call, in)
		if err == nil {
			is = made{in.Name, map[string]any{"Owner": out.Owner, "Path": out.Path}}
		}
		return err
	})
	return is, err
}

func deleteSource(ctx context.Context, w *work) error {
	err := w.operate(ctx, &dropSource, "", func(s *sources.Sources, call *rest.Call) error {
		_, err := s.Delete(ctx, call, &sources.ChangeSource{Name: w.Target.Physical})
		return err
	})
	if refused, ok := errors.AsType[*handlerError](err); ok && refused.code == "NotFound" {
		return nil
	}
	return err
}
