// Package wire turns HTTP requests into calls of the API's operations and
// their answers into responses, in the protocols of AWS.
//
// An operation is declared once, in its API package, by api.Op: a name and a
// handler, whose input and output types are the operation's shapes. Fields are
// named as AWS names the members; the tag `wire` states what the Query protocol
// does differently. Nothing else is needed for any protocol:
//
//	type GreetInput struct {
//		Name  string   `wire:"required"`
//		Langs []string `wire:"name=Lang,flat"` // Lang.1=en&Lang.2=fr
//	}
//	type GreetOutput struct{ Greeting string }
//
//	func (s *Service) Greet(ctx context.Context, call *api.Call, in *GreetInput) (*GreetOutput, error) {
//		if in.Name == "Nobody" {
//			return nil, fault.New(fault.InvalidParameter, "Nobody cannot be greeted.")
//		}
//		return &GreetOutput{Greeting: "Hello " + in.Name}, nil
//	}
//
//	func (s *Service) Operations() []api.Operation {
//		return []api.Operation{api.Op("Greet", s.Greet)}
//	}
//
// The server assembles the tables:
//
//	handler := wire.NewHandler(wire.Options{
//		Services: []*wire.Service{wire.SQS(sqs.Operations()...), wire.SNS(sns.Operations()...)},
//		Logger: logger, Clock: clk, DefaultRegion: "us-east-1", DefaultAccount: "000000000000",
//	})
//
// Shapes may hold strings, ints, bools, blobs ([]byte), pointers to the first
// three (nil is absent), int64, float64, api.Time, structs
// and pointers to them, lists of any of these, maps from string to
// any of these, and api.Pairs. The constructor of a service panics on a shape
// with any other field. Required members are checked here, before the handler: for a plain
// string "" counts as absent.
//
// A handler's error of package fault becomes the code, status and text that
// the service's error table (errors_sqs.go, errors_sns.go) gives its kind in
// the protocol of the call. A fault without a text gets AWS's own text for the
// kind. Any other error is logged and answered as an internal failure.
package wire
