// Redeems powgate tokens. Go 1.18 and newer, standard library only.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

var client = http.Client{
	Timeout: time.Second,
	// The API key goes to no other address.
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// verify gives "" for a token that is good, and otherwise a code such as "token-used". An error (no answer, a limit, a
// wrong key) is no verdict, and never a pass.
func verify(token, ip string) (code string, err error) {
	if token == "" {
		return "token-missing", nil
	}
	if len(token) > 1024 {
		return "invalid-body", nil // powgate says the same, and of a far longer one nothing
	}
	for name, start := range map[string]string{"POWGATE_URL": "http", "POWGATE_API_KEY": "sk_"} {
		if setting(name) == "" {
			return "", fmt.Errorf("%s is not set", name)
		}
		if !strings.HasPrefix(setting(name), start) {
			return "", fmt.Errorf("%s does not begin with %s", name, start)
		}
	}
	// The key is new for each call, and the same for its retries: they are one redemption.
	key := make([]byte, 16)
	if _, err := rand.Read(key); err != nil {
		return "", err
	}
	body, _ := json.Marshal(map[string]string{"token": token, "expectedIp": ip, "idempotencyKey": hex.EncodeToString(key)})
	for attempt := 0; ; attempt++ {
		status, result, failure := send(body)
		switch {
		case status == 200 && result.Success:
			return "", nil
		case status == 400 && result.Code != "":
			return result.Code, nil
		case status == 0:
			err = fmt.Errorf("no answer: %w", failure)
		case status < 502 || status > 504:
			return "", fmt.Errorf("status %d, code %q", status, result.Code)
		default:
			err = fmt.Errorf("status %d, code %q", status, result.Code)
		}
		if attempt == 2 {
			return "", err
		}
		time.Sleep(100 * time.Millisecond << attempt)
	}
}

// setting leaves out the newline with which many files of secrets end.
func setting(name string) string {
	return strings.TrimSpace(os.Getenv(name))
}

type answer struct {
	Success bool
	Code    string
}

// send gives the status 0 and an error if no whole answer came.
func send(body []byte) (status int, result answer, err error) {
	request, err := http.NewRequest("POST", strings.TrimRight(setting("POWGATE_URL"), "/")+"/verify-token", bytes.NewReader(body))
	if err != nil {
		return 0, result, err
	}
	request.Header.Set("Authorization", "Bearer "+setting("POWGATE_API_KEY"))
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, result, err
	}
	defer response.Body.Close()
	err = json.NewDecoder(response.Body).Decode(&result)
	if err != nil && response.StatusCode == 200 {
		return 0, answer{}, err // an answer that was cut
	}
	return response.StatusCode, result, nil
}

// words are for the person, with the form again, and what they wrote. Without scripts, or too early, forms bring no token.
func words(code string) string {
	if code != "token-missing" {
		return "We could not check that you are a person (" + code + "). Please send the form again."
	}
	return "We could not check that you are a person. Please allow JavaScript, wait for the word Verified, and send the form again."
}
