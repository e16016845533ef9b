// badge.js keeps the number of pending approvals in the navigation. It polls: one stream a tab is
// for the session that is shown.

const link = document.querySelector('.nav a[href$="/approvals"]');
const path = link?.getAttribute("href").match(/^(.*)\/w\/([^/]+)\/approvals$/);

async function poll() {
  if (document.hidden) return;
  let page;
  try {
    const res = await fetch(`${path[1]}/api/v1/workspaces/${path[2]}/approvals?status=pending&limit=100`, { headers: { Accept: "application/json" } });
    if (!res.ok) return;
    page = await res.json();
  } catch { return; }
  const n = page.data.length;
  let count = link.querySelector(".count");
  if (!count && n) { count = document.createElement("span"); count.className = "count"; count.role = "img"; link.append(count); }
  if (count) { count.textContent = page.has_more ? "99+" : n; count.hidden = !n; count.ariaLabel = `${n} pending`; }
  dispatchEvent(new CustomEvent("pending", { detail: page.data.map((a) => a.approval_id) }));
}

if (path) { poll(); setInterval(poll, 5000); document.addEventListener("visibilitychange", poll); addEventListener("answered", poll); }
