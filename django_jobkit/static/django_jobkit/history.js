// Selects rows of the history, and keeps what nobody asked for out of the URL.
"use strict";
document.querySelector(".jobkit-filters")?.addEventListener("formdata", ({ formData }) => {
	for (const [name, value] of [...formData]) if (!value) formData.delete(name);
});
const all = document.querySelector("[data-jobkit-all]");
if (all) {
	const form = all.form;
	const boxes = [...form.querySelectorAll("[name=job]")];
	const show = () => {
		const count = boxes.filter((box) => box.checked).length;
		all.checked = count > 0 && count === boxes.length;
		all.indeterminate = count > 0 && !all.checked;
		form.querySelector("output").value = count;
	};
	all.addEventListener("change", () => boxes.forEach((box) => (box.checked = all.checked)));
	form.addEventListener("change", show);
	addEventListener("pageshow", show);
	form.querySelectorAll("[hidden]").forEach((part) => (part.hidden = false));
}
