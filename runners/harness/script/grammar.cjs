// A plugin of the translator: what a setup or teardown script may say beyond a module of Node's.
'use strict';

/** A script is the body of a function, and its `import` is ours, as its `require` is. */
function grammar({ types }, { isPlain }) {
  return {
    manipulateOptions(_options, parser) {
      parser.allowReturnOutsideFunction = true;
      parser.allowAwaitOutsideFunction = true;
      // Read as a module it would become strict.
      if (isPlain) parser.sourceType = 'script';
    },
    visitor: {
      Import(path) {
        const [require, later] = ['require', 'later'].map((name) => types.identifier(name));
        path.replaceWith(types.memberExpression(require, later));
      },
    },
  };
}

module.exports = grammar;
