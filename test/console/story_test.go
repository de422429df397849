package console_test

import (
	"fmt"
	"testing"
)

// It is three in the morning, and a customer's web hook gets nothing. Whoever is on call finds
// out why, keeps it from getting worse, and makes it right.
func TestThreeInTheMorning(t *testing.T) {
	s := start(t, "--clock", "virtual", "--jitter", "0")
	sh := openShop(t, s, "the database of the shop is out of order", "shop")
	for i := range 6 {
		sh.publish(fmt.Sprintf(`{"order":%d}`, i))
	}
	sh.advance("5m") // three retries, 20 s apart, were not enough
	sh.publish(`{"order":"late"}`)
	b := s.open(t)

	// The overview says what is wrong, and leads there.
	b.visit("")
	b.shows("An endpoint fails")
	b.shows("Dead letters")
	b.picture("overview")
	b.visit("topology")
	b.until("the picture has the web hook", fmt.Sprintf(`[...document.querySelectorAll("svg text")].some((e) => e.textContent.startsWith("http://127"))`))
	b.picture("topology")
	b.visit("")
	b.press("orders:")

	// Its last answer, and the schedule ahead of what still waits.
	b.shows("503")
	b.shows("3 to come")
	b.until("the schedule is drawn", `document.querySelectorAll("svg .next").length === 3 && document.querySelector("svg .made")`)
	b.picture("subscription")

	// Nothing more is to be used up until it is mended.
	b.press("Pause deliveries")
	b.shows("Resume deliveries")
	b.shows("paused")

	// Six have died, all of the same cause. Looking at them changes nothing.
	b.press("Dead letters")
	b.shows("Why they died")
	b.until("the six have one cause", `document.querySelectorAll("tbody tr").length === 1 && document.querySelector("tbody td.number").textContent === "6"`)
	b.press("Show messages")
	b.until("they are listed", `document.querySelectorAll(".message").length === 6`)
	b.picture("dead-letters")

	// A policy that tries for longer: simulated first, then saved.
	b.visit("policy", "subscription", sh.subscription)
	b.shows("1 min")
	b.fill("Retries in all", "50")
	b.shows("16 min 40 s")
	b.picture("policy")
	b.press("Save policy")
	b.shows("Saved.")

	// The shop is back. One is tried first.
	sh.hook.mend()
	b.visit("subscription", "arn", sh.subscription)
	b.press("Resume deliveries")
	b.shows("Pause deliveries")
	b.press("Retry now")
	eventually(t, "the late order arrives", func() bool { return sh.hook.taken() == 1 })

	// Then all that died, to the web hook itself, at a rate.
	b.visit("dead-letters", "queue", sh.dead)
	b.choose("To", "subscription")
	b.press("Preview all")
	b.shows("6 dead letters")
	b.press("Redrive 6")
	b.until("the job is done", `document.querySelector(".job")?.textContent.includes("completed")`)
	b.picture("redrive")
	eventually(t, "all orders arrive", func() bool { return sh.hook.taken() == 7 })
	b.press("Look again")
	b.shows("No dead letters")
	b.visit("")
	b.until("nothing needs a person any more", `!document.body.innerText.includes("An endpoint fails") && !document.body.innerText.includes("Dead letters\n")`)
}

// Where one has to sign in nothing is shown before, and nothing afterwards.
func TestSignIn(t *testing.T) {
	s := start(t, "--enforce")
	b := s.open(t)
	b.visit("queues")
	b.shows("Sign in to Godwit")
	b.fill("Access key", rootKey)
	b.fill("Secret access key", "not this one")
	b.press("Sign in")
	b.until("it is refused", `document.querySelector("[role=alert]")`)
	b.picture("sign-in")
	b.fill("Secret access key", rootSecret)
	b.press("Sign in")
	b.shows("There are no queues.")
	b.shows("Signed in as")
	if b.is(`document.cookie`) {
		t.Error("a script can read the cookie")
	}
	b.visit("topics")
	b.shows("There are no topics.")
	b.press("Sign out")
	b.shows("Sign in to Godwit")
	b.visit("topics")
	b.shows("Sign in to Godwit")
}
