'use strict';
// What keys type, as Playwright's layout of a US keyboard has it; typed_keys.py is its twin.

const BACKSPACE = '\b';
const DELETE = '\x7f';
/** Of keys by code, what they type without Shift and with it. */
const SIGNS = {
  Backquote: '`~', Minus: '-_', Equal: '=+', BracketLeft: '[{', BracketRight: ']}', Backslash: '\\|',
  Semicolon: ';:', Quote: '\'"', Comma: ',<', Period: '.>', Slash: '/?',
  Space: '  ', Enter: '\n\n', NumpadEnter: '\n\n',
  NumpadAdd: '++', NumpadSubtract: '--', NumpadMultiply: '**', NumpadDivide: '//',
  Backspace: BACKSPACE.repeat(2), Delete: DELETE.repeat(2),
};
const ABOVE_DIGITS = ')!@#$%^&*(';
const OTHER_MODIFIER = /^(?:Control|Alt|Meta|ControlOrMeta)/;
const MODIFIER = /^(?:Shift|Control|Alt|Meta)(?:Left|Right)?$|^ControlOrMeta$/;
/** They neither type nor move to another place of a line. */
const QUIET = /^(?:Escape|F\d+|CapsLock|NumLock|ScrollLock|AltGraph|ContextMenu|PrintScreen|Pause|Arrow(?:Up|Down)|Page(?:Up|Down))$/;
/** With Control: all is selected or copied, or a form is sent. */
const HARMLESS = /^(?:(?:Key)?[ac]|Enter)$/i;

function isLetter(text) {
  return [...text].length === 1;
}

/** What a key types, or takes away; nothing: that; null: what is typed next may stand elsewhere. */
function letterOf(key, isShifted = false) {
  const [bare, ...held] = key.length > 1 ? key.split('+').reverse() : [key];
  if (held.some((one) => OTHER_MODIFIER.test(one))) return HARMLESS.test(bare) ? '' : null;
  return byName(bare || '+', isShifted || held.some((one) => one.startsWith('Shift')));
}

function byName(name, isShifted) {
  if (isLetter(name)) return name;
  const [, letter] = /^Key([A-Z])$/.exec(name) ?? [];
  if (letter) return isShifted ? letter : letter.toLowerCase();
  const [, digit] = /^Digit(\d)$/.exec(name) ?? [];
  if (digit) return isShifted ? ABOVE_DIGITS[digit] : digit;
  const [, keypad] = /^Numpad(\d|Decimal)$/.exec(name) ?? [];
  if (keypad) return isShifted ? keypad.replace('Decimal', '.') : null; // else it moves
  if (name === 'Tab') return isShifted ? '' : '\t';
  if (MODIFIER.test(name) || QUIET.test(name)) return '';
  return SIGNS[name]?.[Number(isShifted)] ?? null;
}

module.exports = { BACKSPACE, DELETE, isLetter, letterOf };
