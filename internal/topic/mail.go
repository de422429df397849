package topic

import "time"

// MailConfirmationGap is the least time between two mails that ask the same address to
// confirm: whoever asks for them need not be its owner.
const MailConfirmationGap = time.Hour

// mailsPerSecond is how many mails a subscription gets in a second. Source: quotas in the
// SNS developer guide.
const mailsPerSecond = 10

// mailedOfLate reports that a pending subscription's address was asked to confirm it so
// recently that it is not asked again: the token that it has stays good.
func (sub *Subscription) mailedOfLate(now time.Time) bool {
	return sub.Protocol.Mail() && sub.confirmation != nil &&
		now.Before(sub.confirmation.Expires.Add(MailConfirmationGap-TokenLife))
}
