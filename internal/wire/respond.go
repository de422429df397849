package wire

import (
	"net/http"
	"strconv"

	"godwit.dev/godwit/internal/fastjson"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/wire/awsjson"
	"godwit.dev/godwit/internal/wire/awsquery"
	"godwit.dev/godwit/internal/wire/rpccbor"
)

// Header values that never change. They are shared by all answers.
var (
	typeAWSJSON = []string{"application/x-amz-json-1.0"}
	typeJSON11  = []string{"application/x-amz-json-1.1"}
	typeJSON    = []string{"application/json"}
	typeCBOR    = []string{"application/cbor"}
	typeXML     = []string{"text/xml"}
)

// Header names as AWS spells them, which is not as net/http would.
const (
	headerRequestID  = "x-amzn-RequestId"
	headerQueryError = "x-amzn-query-error"
	headerErrorType  = "x-amzn-ErrorType"
	headerProtocol   = "smithy-protocol"
)

// smithyCBOR is the value of headerProtocol.
var smithyCBOR = []string{"rpc-v2-cbor"}

const xmlDeclaration = `<?xml version="1.0"?>`

// answer writes the operation's output.
func (x *exchange) answer(out any) {
	b := getBuffer(x.sizeOf(x.memory.Held()))
	defer b.release()
	dst, op := b.b[:0], x.op
	if x.call.Protocol == protocolREST {
		b.b = x.answerREST(dst, out)
		return
	}
	switch {
	case x.call.Protocol == protocolJSON:
		if !op.void {
			dst = awsjson.Append(dst, out)
		}
	case x.call.Protocol == protocolCBOR:
		if !op.void {
			dst = rpccbor.Append(dst, out)
		}
	case x.asJSON:
		dst = append(dst, op.jsonPrefix...)
		if !op.void {
			dst = awsjson.AppendQueryJSON(dst, out)
			dst = append(dst, ',')
		}
		dst = append(dst, `"ResponseMetadata":{"RequestId":`...)
		dst = fastjson.AppendString(dst, x.call.RequestID)
		dst = append(dst, "}}}"...)
	default:
		if x.service.declaration {
			dst = append(dst, xmlDeclaration...)
		}
		dst = append(dst, op.openTags...)
		if !op.void {
			begun := len(dst)
			if dst = awsquery.AppendMembers(dst, out); len(dst) > begun || !x.service.declaration {
				dst = append(dst, op.resultEnd...)
			} else { // some clients expect an empty element in this form
				dst = append(dst[:begun-1], "/>"...)
			}
		}
		dst = append(dst, "<ResponseMetadata><RequestId>"...)
		dst = awsquery.AppendEscaped(dst, x.call.RequestID)
		dst = append(dst, "</RequestId></ResponseMetadata>"...)
		dst = append(dst, op.closeTags...)
	}
	b.b = dst
	x.write(http.StatusOK, dst)
}

// refuseBare refuses a request without an action. As with AWS, that has a form of its own, and is
// XML whatever the client accepts.
func (x *exchange) refuseBare() {
	x.code, x.asJSON = "UnknownOperationException", false
	x.write(http.StatusNotFound, []byte("<UnknownOperationException/>"))
}

// answerError writes a refusal.
func (x *exchange) answerError(shape errorShape, text string) {
	b := getBuffer(0)
	defer b.release()
	if x.absent.why != nil {
		shape = x.absentShape(shape)
	}
	x.code = shape.Code
	side := "Sender"
	if shape.Server {
		side = "Receiver"
	}
	dst := b.b[:0]
	switch {
	case x.absent.why != nil && x.call.Protocol == protocolREST:
		dst = x.appendAbsentREST(dst, shape, text)
	case x.absent.why != nil && x.call.Protocol == protocolQuery:
		dst = x.appendAbsentXML(dst, shape, text)
	case x.call.Protocol == protocolREST:
		dst = x.appendRESTError(dst, shape, text)
	case x.call.Protocol == protocolJSON:
		x.queryError(&shape, side)
		dst = append(dst, `{"__type":`...)
		dst = fastjson.AppendString(dst, shape.Type)
		if !shape.Mute {
			dst = append(dst, `,"message":`...)
			dst = fastjson.AppendString(dst, text)
		}
		dst = append(dst, '}')
	case x.call.Protocol == protocolCBOR:
		x.queryError(&shape, side)
		if shape.Mute {
			dst = rpccbor.AppendTexts(dst, "__type", shape.Type)
		} else {
			dst = rpccbor.AppendTexts(dst, "__type", shape.Type, "message", text)
		}
	case x.asJSON:
		dst = append(dst, `{"Error":{"Type":"`...)
		dst = append(dst, side...)
		dst = append(dst, `","Code":`...)
		dst = fastjson.AppendString(dst, shape.Code)
		if !shape.Mute {
			dst = append(dst, `,"Message":`...)
			dst = fastjson.AppendString(dst, text)
		}
		dst = append(dst, `},"RequestId":`...)
		dst = fastjson.AppendString(dst, x.call.RequestID)
		dst = append(dst, '}')
	default:
		if x.service.declaration {
			dst = append(dst, xmlDeclaration...)
		}
		dst = append(dst, `<ErrorResponse xmlns="`...)
		dst = append(dst, x.service.Namespace...)
		dst = append(dst, `"><Error><Type>`...)
		dst = append(dst, side...)
		dst = append(dst, "</Type><Code>"...)
		dst = append(dst, shape.Code...)
		dst = append(dst, "</Code>"...)
		if !shape.Mute {
			dst = append(dst, "<Message>"...)
			dst = awsquery.AppendEscaped(dst, text)
			dst = append(dst, "</Message>"...)
		}
		if x.service.declaration {
			dst = append(dst, "<Detail/>"...)
		}
		dst = append(dst, "</Error><RequestId>"...)
		dst = awsquery.AppendEscaped(dst, x.call.RequestID)
		dst = append(dst, "</RequestId></ErrorResponse>"...)
	}
	b.b = dst
	x.write(shape.Status, dst)
}

// queryError adds a header with Query's code to an error in another protocol. If the service
// sends it on request only, and it is not requested, client errors have status 400.
func (x *exchange) queryError(shape *errorShape, side string) {
	if x.service.json11 {
		return
	}
	if x.service.queryMode && x.r.Header.Get("X-Amzn-Query-Mode") != "true" {
		if !shape.Server && !shape.Fixed {
			shape.Status = http.StatusBadRequest
		}
		return
	}
	x.headers[2] = shape.Code + ";" + side
	x.w.Header()[headerQueryError] = x.headers[2:3:3]
}

func (x *exchange) write(status int, body []byte) {
	if err := x.hold(body); err != nil && status < http.StatusBadRequest {
		x.refuse(err)
		return
	}
	header := x.w.Header()
	x.headers[0] = x.call.RequestID
	header[headerRequestID] = x.headers[0:1:1]
	switch {
	case x.call.Protocol == protocolJSON && x.service.json11:
		header["Content-Type"] = typeJSON11
	case x.call.Protocol == protocolJSON:
		header["Content-Type"] = typeAWSJSON
	case x.call.Protocol == protocolCBOR:
		header[headerProtocol] = smithyCBOR
		if len(body) > 0 { // without a body the protocol forbids it
			header["Content-Type"] = typeCBOR
		}
	case x.asJSON || x.call.Protocol == protocolREST:
		header["Content-Type"] = typeJSON
	default:
		header["Content-Type"] = typeXML
	}
	x.headers[1] = strconv.Itoa(len(body))
	if status != http.StatusNoContent {
		header["Content-Length"] = x.headers[1:2:2]
	}
	x.status = status
	x.w.WriteHeader(status)
	if len(body) > 0 {
		_, _ = x.w.Write(body) // on an error the client has gone
	}
}

// rendered is how many bytes of memory an answer takes for each byte of its data: as read, as
// the operation's output, and encoded.
const rendered = 3

// sizeOf estimates the size of an answer from the memory that was reserved for it.
func (x *exchange) sizeOf(reserved int64) int {
	if reserved <= limit.Free || x.op.Answer > 0 {
		return 0
	}
	return int(reserved / rendered * 17 / 16)
}

// hold adjusts the reservation to the encoded answer, until the client has read it.
func (x *exchange) hold(body []byte) error {
	if err := x.memory.Resize(x.r.Context(), int64(cap(body))); err != nil {
		return err
	}
	if x.memory.Held() > limit.Free {
		if peer := limit.PeerOf(x.r.Context()); peer != nil {
			x.memory.Writing(peer)
		}
	}
	return nil
}
