// Finds text that does not stand out: WCAG's ratio of brightness, of every visible text against what lies beneath it.
() => {
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();

  function parse(colour) { // [red, green, blue] from 0 to 255 and opacity, of any colour that CSS can write
    if (!known.has(colour)) {
      probe.clearRect(0, 0, 1, 1);
      probe.fillStyle = colour;
      probe.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = probe.getImageData(0, 0, 1, 1).data;
      known.set(colour, { rgb: [red, green, blue], alpha: alpha / 255 });
    }
    return known.get(colour);
  }

  const over = (top, share, below) => top.map((part, k) => share * part + (1 - share) * below[k]);

  function brightness(rgb) {
    const [red, green, blue] = rgb.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }

  function ratio(one, other) {
    const [low, high] = [brightness(one), brightness(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  }

  const opacity = (element) => { let share = 1; for (let at = element; at; at = at.parentElement) share *= Number(getComputedStyle(at).opacity); return share; };
  const isDrawn = (element) => element instanceof SVGElement && !(element instanceof SVGSVGElement) && element.tagName !== "text";

  function paintOf(element) {
    const style = getComputedStyle(element);
    const paint = isDrawn(element) ? style.fill : style.backgroundColor;
    return paint === "none" ? { rgb: [0, 0, 0], alpha: 0 } : parse(paint);
  }

  function beneath(element, x, y) { // what is seen through the text at a point
    const stack = document.elementsFromPoint(x, y);
    const from = stack.indexOf(element);
    const own = element instanceof SVGElement ? from + 1 : from;
    const layers = (from < 0 ? [] : stack.slice(own)).map((one) => ({ ...paintOf(one), shared: opacity(one) }));
    return layers.reduceRight((below, layer) => over(layer.rgb, layer.alpha * layer.shared, below), parse(getComputedStyle(document.documentElement).backgroundColor).rgb);
  }

  const found = [];
  let checked = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility({ checkVisibilityCSS: true }) || element.closest(":disabled, option, .skip, script, style")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const [box] = range.getClientRects();
    if (!box || box.width < 1 || box.height < 1) continue;
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    if (!document.elementsFromPoint(x, y).includes(element)) continue; // scrolled out of a box of its own, or covered
    const style = getComputedStyle(element);
    const ink = parse(element instanceof SVGElement ? style.fill : style.color);
    const ground = beneath(element, x, y);
    const seen = over(ink.rgb, ink.alpha * opacity(element), ground);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const reached = ratio(seen, ground);
    checked += 1;
    if (reached < (large ? 3 : 4.5)) found.push(`${node.data.trim().slice(0, 40)} (${element.tagName}.${element.getAttribute("class") ?? ""}): ${reached.toFixed(2)}`);
  }
  return { checked, found };
}
