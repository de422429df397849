package outlet

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"strconv"
	"time"

	_ "time/tzdata" // a stream's time zone must not depend on the machine

	"godwit.dev/godwit/internal/deliverystream"
)

// failedRecord is a line of an object with what an HTTP endpoint did not take. Source: the
// backup of an HTTP endpoint's failed records, in Firehose's developer guide.
type failedRecord struct {
	AttemptsMade           int    `json:"attemptsMade"`
	ArrivalTimestamp       int64  `json:"arrivalTimestamp"`
	ErrorCode              string `json:"errorCode"`
	ErrorMessage           string `json:"errorMessage"`
	AttemptEndingTimestamp int64  `json:"attemptEndingTimestamp"`
	RawData                string `json:"rawData"`
	SubsequenceNumber      int    `json:"subsequenceNumber"`
	DataID                 string `json:"dataId"`
}

func (d *delivery) writeFailed(w io.Writer, why *deliverystream.Failure) error {
	b, lines := d.batch, json.NewEncoder(w)
	attempts := b.Attempts // of earlier versions
	if b.Posted != nil {
		attempts = b.Posted.Count
	}
	n := 0
	return d.read(func(arrival int64, records []deliverystream.Record) error {
		for i := range records {
			line := failedRecord{
				max(attempts, 1), arrival, why.Code, why.Message, why.At,
				base64.StdEncoding.EncodeToString(records[i].Data), 0, b.ID + "." + strconv.Itoa(n),
			}
			if err := lines.Encode(&line); err != nil {
				return err
			}
			n++
		}
		return nil
	})
}

// Zone is the time zone of the names of objects.
func Zone(to *deliverystream.ExtendedS3) (*time.Location, error) {
	if to.CustomTimeZone == nil || *to.CustomTimeZone == "" {
		return time.UTC, nil
	}
	return time.LoadLocation(*to.CustomTimeZone)
}
