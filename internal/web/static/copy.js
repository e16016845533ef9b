// copyText copies the text or the value of an element. Servers in a LAN use plain http, where there
// is no Clipboard API: then a selection is copied.
export async function copyText(element) {
  const text = "value" in element ? element.value : element.textContent;
  if (navigator.clipboard && window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch { /* not allowed: fall back */ }
  }
  const selection = getSelection();
  if ("select" in element) {
    element.select();
  } else {
    const range = document.createRange();
    range.selectNodeContents(element);
    selection.removeAllRanges();
    selection.addRange(range);
  }
  const done = document.execCommand("copy");
  selection.removeAllRanges();
  return done;
}
