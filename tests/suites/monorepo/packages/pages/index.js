exports.openFront = async (page) => page.setContent('<h1>Lamps</h1>');
