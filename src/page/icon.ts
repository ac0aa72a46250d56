/** A paw, in a square of 32. */
export const PAW: string = `<ellipse cx="7.6" cy="15.2" rx="2.3" ry="3"/>` +
  `<ellipse cx="12.7" cy="9.6" rx="2.4" ry="3.3"/><ellipse cx="19.3" cy="9.6" rx="2.4" ry="3.3"/>` +
  `<ellipse cx="24.4" cy="15.2" rx="2.3" ry="3"/><path d="M16 14.6c3.4 0 7.2 4.6 7.2 7.8 0 2.2-1.7 3.2-3.5 3.2` +
  `-1.5 0-2.5-.7-3.7-.7s-2.2.7-3.7.7c-1.8 0-3.5-1-3.5-3.2 0-3.2 3.8-7.8 7.2-7.8z"/>`;

/** The icon: a paw of paper on the page's accent. */
export const ICON: string = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">` +
  `<rect width="32" height="32" rx="8" fill="#1c3faa"/><g fill="#fdf9f1">${PAW}</g></svg>`;

/** The same in a URL: a page that carries its icon asks for none. */
export const ICON_URL: string = `data:image/svg+xml,${encodeURIComponent(ICON)}`;
